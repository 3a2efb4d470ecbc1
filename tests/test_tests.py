"""What the tests promise each other: a folder like that of the code, one number of examples."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
OF_NO_CODE = {"contract", "support"}  # what many rooms promise alike, and what tests share
WITH_A_CLUSTER = {"system": {"ray", "spark"}, "hosts": {"hosts"}}  # {folder: marks of its files}


def is_like_the_code(folder: str) -> bool:
    """Return whether a folder below tests/ is one of ours, or a room of runtime."""
    return any((top / folder).is_dir() for top in (ROOT, ROOT / "runtime"))


def marks_of(module: ast.Module) -> set[str]:
    """Return the marks that a file gives to all of its tests."""
    return {
        node.attr
        for statement in module.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark"
        for node in ast.walk(statement.value)
        if isinstance(node, ast.Attribute)
    }


def examples_given(module: ast.Module) -> list[int]:
    """Return the lines on which a number of examples is a number, not a share of the profile's."""
    return [
        node.value.lineno
        for node in ast.walk(module)
        if isinstance(node, ast.keyword) and node.arg == "max_examples"
        if isinstance(node.value, ast.Constant)
    ]


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_a_folder_of_tests_is_named_like_that_of_the_code_that_they_test() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")} - {Path()}
    others = {str(one) for one in folders if one.parts[0] not in OF_NO_CODE | {*WITH_A_CLUSTER}}
    assert others
    strange = sorted(folder for folder in others if not is_like_the_code(folder))
    assert not strange, f"no folder of the code is called so: {strange}"


def test_what_needs_no_cluster_lies_beside_the_code_that_it_tests() -> None:
    files = [
        (path, wanted)
        for f, wanted in WITH_A_CLUSTER.items()
        for path in (TESTS / f).glob("test_*.py")
    ]
    wrong = [
        str(path.relative_to(ROOT)) for path, wanted in files if not wanted & marks_of(parsed(path))
    ]
    assert not wrong, f"move the tests that start nothing, and mark the file: {wrong}"


def test_how_many_examples_are_tried_is_for_the_profile_to_say() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        if path.name != "conftest.py"
        if "max_examples" in path.read_text(encoding="utf-8")  # to parse all takes a second
        for line in examples_given(parsed(path))
    ]
    assert not found, f"use the profile, or a multiple of it (tests/support/examples.py): {found}"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("@settings(max_examples=8)\ndef f(): ...", [1]),
        ("fewer = settings(\n    deadline=None, max_examples=8\n)", [2]),
        ("twice = settings(max_examples=2 * settings().max_examples)", []),
    ],
)
def test_the_rule_sees_a_number_however_it_is_given(source: str, lines: list[int]) -> None:
    assert examples_given(ast.parse(source)) == lines
