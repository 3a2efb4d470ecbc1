"""docs/types.md names each function of expressions."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.runtime.expressions import Expr
from slackwater.runtime.expressions.nested_methods import ListMethods
from slackwater.runtime.expressions.text_methods import TextMethods
from slackwater.runtime.expressions.time_methods import TimeMethods

PAGE = (Path(__file__).parents[2] / "docs" / "types.md").read_text()


def functions(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_") and name not in Expr._inner]


@pytest.mark.parametrize(
    ("kind", "least"), [(Expr, 25), (TextMethods, 10), (TimeMethods, 8), (ListMethods, 8)]
)
def test_the_page_names_each_function(kind: type, least: int) -> None:
    names = functions(kind)
    assert len(names) >= least
    assert [name for name in names if f".{name}" not in PAGE] == []
