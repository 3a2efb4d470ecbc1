"""Models of costs and links that cannot be used are refused by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError

Cost, Link = sw.testing.CostModel, sw.testing.LinkModel
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "a number as costs": (
        lambda: sw.Simulation(cost=5),  # type: ignore[arg-type]
        r"cost=5 is not a model .* write sw.testing.CostModel",
    ),
    "a link as costs": (
        lambda: sw.Simulation(cost=Link()),  # type: ignore[arg-type]
        "cost=LinkModel.* is not a model of costs",
    ),
    "costs as a link": (
        lambda: sw.Simulation(link=Cost()),  # type: ignore[arg-type]
        "link=CostModel.* is not a model of links",
    ),
    "a seed below zero": (lambda: sw.Simulation(seed=-1), "seed=-1 must be zero or more"),
    "a tuner's seed below zero": (lambda: sw.Tuning(seed=-1), "seed=-1 must be zero or more"),
    "a cost that is no number": (
        lambda: Cost(per_row_ns=float("nan")),
        "per_row_ns=nan must be a finite number",
    ),
    "an infinite cost": (lambda: Cost(jitter=float("inf")), "jitter=inf must be a finite number"),
    "a negative cost": (
        lambda: Cost(stages={"a": -1}),
        r"stages\['a'\]=-1 must be .* or more",
    ),
    "a cost in words": (
        lambda: Cost(stages={"a": "2ms"}),  # type: ignore[dict-item]
        r"stages\['a'\]='2ms' must be a finite number",
    ),
    "a factor as load": (
        lambda: Cost(load={"a": 3.0}),  # type: ignore[dict-item]
        r"load\['a'\]=3.0 must be a function .* write load=\{'a': lambda now_ns: 3.0\}",
    ),
    "a link between one node": (
        lambda: Link(between={"node-1": Link()}),  # type: ignore[dict-item]
        "`between` has 'node-1'",
    ),
    "a delay between two nodes": (
        lambda: Link(between={("node-1", "node-2"): 5}),  # type: ignore[dict-item]
        r"`between` has .*: 5; write \{\('node-1', 'node-2'\)",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_model_that_cannot_be_used_is_refused(name: str) -> None:
    make, said = WRONG[name]
    with pytest.raises(SettingError, match=said):
        make()
