"""A custom rule of shedding is refused where it is written, with the way out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import OperatorError, SettingError

OVERLOAD = sw.shedding.espice("1s", drops="events").overload


class Unfinished(sw.shedding.Shedder):
    """A shedder without its methods."""


@dataclass(frozen=True)
class Rule(sw.shedding.EventShedding):
    make: Callable[[], Any] = int

    @property
    def ranking(self) -> str:
        return "own"

    def shedder(self, repetitions: Mapping[int, int]) -> Any:
        del repetitions
        return self.make()


def shed(rule: Any) -> None:
    rows = sw.Dataflow("shed").source("rows", sw.table({"t": [1]}), event_time="t", time_unit="s")
    pattern = sw.patterns.event("A", where=sw.col("t") > 0)
    rows.pattern(pattern, window=sw.tumbling("1s"), shed=rule, name="rises")


def test_a_shedder_that_cannot_be_made_is_refused_with_its_reason() -> None:
    def make() -> sw.shedding.Shedder:
        return Unfinished(seed=0, explore=0.1, sample=0.1)

    with pytest.raises(OperatorError, match=r"(?s)step 'rises'.*TypeError.*abstract.*shed=Rule"):
        shed(Rule(OVERLOAD, make=make))


def test_something_else_than_a_shedder_is_refused() -> None:
    with pytest.raises(SettingError, match=r"'rises'.* must return a sw.shedding.Shedder, not 0"):
        shed(Rule(OVERLOAD))


def test_a_class_in_place_of_a_rule_is_refused() -> None:
    with pytest.raises(SettingError, match="is not a way of shedding"):
        shed(Rule)


@pytest.mark.parametrize("settings", [{"overload": "1s"}, {"overload": OVERLOAD, "model": 5}])
def test_a_bound_or_model_of_another_class_is_refused_by_name(settings: dict[str, Any]) -> None:
    name = list(settings)[-1]
    with pytest.raises(SettingError, match=rf"{name}=.* write sw\.shedding\.espice.*\.{name}"):
        Rule(**settings)
