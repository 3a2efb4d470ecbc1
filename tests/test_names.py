"""Names are for people: no code takes one apart to learn what it names.

A stage has its step and its part, a slot its node and its core, as fields.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import slackwater

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("runtime", "actors", "ingest", "slackwater")
TAKES_APART = {
    *("split", "rsplit", "partition", "rpartition"),
    *("removeprefix", "removesuffix", "startswith", "endswith"),
}
JOINTS = ("/", ".", "→", ":")
"""What is put between the parts of a name of ours."""
NAMES = {"name", "stage", "step", "slot", "node", "channel", "sink", "origin", "target", "source"}
PARTS = (".gate", "→")
"""What only the file that makes names may write."""
MAKERS = {"runtime/plan/planned_stages.py": ".gate", "runtime/plan/plan.py": "→"}
NOT_OURS = {
    ("actors/sinks/output_path.py", "path.name"),  # of a file
    ("slackwater/cli/userfile.py", "target"),  # FLOW.py:name, as one types it
}


def taken_apart(tree: ast.Module, path: str) -> Iterator[str]:
    """Yield each place where a name is taken apart, or put together to be looked up."""
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in TAKES_APART:
                continue
            called = ast.unparse(node.func.value)
            if (
                called.split(".")[-1].lstrip("_") in NAMES
                and (path, called) not in NOT_OURS
                and any(_is_joint(one) for one in node.args)
            ):
                yield f"{path}:{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for part in PARTS:
                is_text = f" {part} " in node.value or id(node) in told
                if part in node.value and not is_text and MAKERS.get(path) != part:
                    yield f"{path}:{node.lineno}: {node.value!r}"


def _is_joint(given: ast.expr) -> bool:
    """Whether it is what stands between parts, or what an f-string or a name of ours makes."""
    if isinstance(given, ast.Constant):
        return isinstance(given.value, str) and given.value in JOINTS
    return isinstance(given, ast.JoinedStr | ast.Attribute)


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Return {file of the packages: its syntax}; to parse all takes a second."""
    files = sorted(path for folder in PACKAGES for path in (ROOT / folder).rglob("*.py"))
    return {str(p.relative_to(ROOT)): ast.parse(p.read_text(encoding="utf-8")) for p in files}


def test_no_code_takes_the_name_of_a_stage_or_a_slot_apart(trees: dict[str, ast.Module]) -> None:
    words = re.compile(rf"\.(?:{'|'.join(TAKES_APART)})\(|{'|'.join(map(re.escape, PARTS))}")
    looked_at = {
        path: tree
        for path, tree in trees.items()
        if words.search((ROOT / path).read_text(encoding="utf-8"))  # else not worth a walk
    }
    assert looked_at
    assert [place for path, tree in looked_at.items() for place in taken_apart(tree, path)] == []


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ('stage.node = name.split("/")[0]', True),
        ('slot.startswith(f"{node}/")', True),
        ("stage.slot.removeprefix(stage.node)", True),
        ('gate = f"{step.name}.gate"', True),
        ('self._name.rpartition(".")', True),
        ('line.split("/")', False),
        ('name.startswith("part-")', False),
        ('"""Of `pairs.gate`."""', False),
    ],
)
def test_what_counts_as_taking_a_name_apart(line: str, is_found: bool) -> None:
    assert bool(list(taken_apart(ast.parse(line), "one.py"))) is is_found


def test_no_message_advises_a_class_that_is_not_public(trees: dict[str, ast.Module]) -> None:
    """A message may name what `slackwater` exports, not what only our own files can import."""
    ours, said = set(), []
    for path, tree in trees.items():
        ours |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        said += [
            (path, node.value)
            for raised in ast.walk(tree)
            if isinstance(raised, ast.Raise)
            for node in ast.walk(raised)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
    rooms = [getattr(slackwater, name) for name in slackwater.__all__ if name not in ours]
    public = {
        *slackwater.__all__,
        *(name for room in rooms for name in getattr(room, "__all__", ())),
    }
    advised = re.compile(r"\b(\w+)(?:\(|\.[a-z])")
    assert not [(path, text) for path, text in said if {*advised.findall(text)} & (ours - public)]
