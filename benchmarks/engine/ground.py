"""The ground under the engine, counted in the code: places of a promise, hops, contracts.

```
python -m benchmarks ground                      this tree
BEFORE=<git ref> python -m benchmarks ground     and that commit's, beside it
```

Names are those of attributes and classes, found in the syntax tree; no code is run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.engine.before import HOW, before_ref, checkout
from benchmarks.frame import Options, Result

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ("runtime/schedule", "runtime/merge", "runtime/sources", "runtime/progress", "actors/wire")
BARE = re.compile(r"^_?(promise|promised|told|reached|frontier)_ns$")
WHOLE = re.compile(r"^_?(progress|consumed|told)$")
NEWEST = re.compile(r"^_?newest(_event)?(_ns)?$")
LOOSE = re.compile(r"promise|watermark_stimulus|frontier|arrived")
SOURCE = (
    "StageMachine",
    "StageSource",
    "SourceNode",
    "SourceMachine",
    "SourceState",
    "BlockReader",
)
WALK = ("GateRead", "Message", "Handed", "Work", "Egress", "Write")

Trees = Mapping[str, ast.Module]


def run(options: Options) -> Result:
    """Count in this tree, and in another commit's."""
    del options
    counts = {"now": _counted(ROOT)}
    if (ref := before_ref()) is not None:
        with checkout(ref) as tree:
            counts = {ref: _counted(tree), **counts}
    result = Result("names in the syntax tree of each file", ["what", *counts])
    for what in counts["now"]:
        result.rows.append([what, *(len(each[what]) for each in counts.values())])
    for where, each in counts.items():
        result.figures[where] = {what: sorted(found) for what, found in each.items()}
    result.notes.append("the places themselves: with --json")
    if ref is None:
        result.notes.append(HOW)
    return result


def _counted(root: Path) -> dict[str, set[str]]:
    """Return {what is counted: where it is}."""
    trees = {
        str(path.relative_to(root)): ast.parse(path.read_text(encoding="utf-8"))
        for folder in ("runtime", "actors")
        for path in sorted((root / folder).rglob("*.py"))
    }
    engine = {name: tree for name, tree in trees.items() if name.startswith(ENGINE)}
    runtime = {name: tree for name, tree in trees.items() if name.startswith("runtime/")}
    classes = {name for tree in trees.values() for name in _classes(tree)}
    schedule = trees.get("runtime/schedule/slot.py", ast.Module([], []))
    return {
        "fields with a bare promise": _fields(engine, BARE),
        "fields with a whole progress": _fields(engine, WHOLE),
        "fields that hold the newest event time": _fields(engine, NEWEST),
        "loose fields of message and read": _fields(
            {n: t for n, t in trees.items() if n.endswith(("model/message.py", "gate_read.py"))},
            LOOSE,
        ),
        "objects of a source": classes.intersection(SOURCE),
        "values on the way to a sink": classes.intersection(WALK),
        "walks over all stages in a slot": _lines(schedule, _walks_stages),
        "batches by position": _each(trees, _is_batch_by_position),
        "isinstance of a step": _each(runtime, _asks_step),
        "getattr in runtime": _each(runtime, lambda node: _is_call(node, "getattr")),
    }


def _classes(tree: ast.Module) -> Iterator[str]:
    return (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _fields(trees: Trees, pattern: re.Pattern[str]) -> set[str]:
    """Return the fields of classes with such a name, as class.field."""
    fields = set()
    for tree in trees.values():
        for owner in ast.walk(tree):
            if isinstance(owner, ast.ClassDef):
                fields |= {f"{owner.name}.{name}" for name in _own(owner) if pattern.search(name)}
    return fields


def _own(owner: ast.ClassDef) -> Iterator[str]:
    """Yield the names of a class's fields."""
    for node in ast.walk(owner):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            for one in ast.walk(target):
                if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self":
                    yield one.attr


def _each(trees: Trees, counts: Callable[[ast.AST], bool]) -> set[str]:
    return {f"{name}:{line}" for name, tree in trees.items() for line in _lines(tree, counts)}


def _lines(tree: ast.AST, counts: Callable[[ast.AST], bool]) -> set[str]:
    return {
        f"{node.lineno}.{node.col_offset}"
        for node in ast.walk(tree)
        if isinstance(node, ast.expr | ast.stmt) and counts(node)
    }


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _is_batch_by_position(node: ast.AST) -> bool:
    return _is_call(node, "Batch") and bool(getattr(node, "args", ()))


def _asks_step(node: ast.AST) -> bool:
    return _is_call(node, "isinstance") and ast.unparse(node).rstrip(")").endswith("Step")


def _walks_stages(node: ast.AST) -> bool:
    return isinstance(node, ast.For) and "_stages.values()" in ast.unparse(node.iter)
