"""The table of functions: each method has a row, and each row a method."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from slackwater.runtime.expressions import expressions
from slackwater.runtime.expressions.expressions import Operation, col
from slackwater.runtime.expressions.function import Over, Results
from slackwater.runtime.expressions.functions import MAP_ELEMENTS
from slackwater.runtime.expressions.table import FUNCTIONS

ROOM = Path(expressions.__file__).parent
MADE = re.compile(r'(?:Operation|_made|_matching|\.operation)\(\s*"([^"]+)"')


def names_in(file: str, prefix: str) -> set[str]:
    names = MADE.findall((ROOM / file).read_text())
    return {name if "." in name or prefix == "" else f"{prefix}.{name}" for name in names}


def test_each_row_has_a_method_and_each_method_a_row() -> None:
    used = names_in("expressions.py", "") | names_in("text_methods.py", "str")
    used |= names_in("time_methods.py", "dt") | names_in("nested_methods.py", "list")
    used = {name.replace("list.[]", "[]") for name in used}
    assert used | {MAP_ELEMENTS} == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_row_has_its_own_name_and_writes_all_operands(name: str) -> None:
    function = FUNCTIONS[name]
    assert function.name == name
    operands = 1 + function.text.is_infix + 2 * (name in ("where", "when"))
    made = Operation(name, *[col(letter) for letter in "abc"[:operands]])
    assert all(f'col("{letter}")' in str(made) for letter in "abc"[:operands])


def test_a_choice_computes_its_operands_itself_and_never_warns() -> None:
    batches = {name: each for name, each in FUNCTIONS.items() if each.over is Over.BATCHES}
    assert set(batches) == {"&", "|", "where", "when"}
    assert all(each.warns is Results.NONE for each in batches.values())
