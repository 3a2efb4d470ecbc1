"""The JSON form of dataclasses: fields, derived values, and only values of the declared types."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pytest

from slackwater.runtime.json_form import JsonObject, JsonView, View, json_bytes, spread


class Pair(NamedTuple):
    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class Inner(JsonObject):
    share: float = 0.0
    pairs: tuple[Pair, ...] = ()


@dataclass(frozen=True)
class Outer(JsonObject):
    rows: int
    words: list[str]
    kind: Literal["a", "b"] = "a"
    inner: Inner | None = None
    by_name: Mapping[str, Inner] = field(default_factory=dict)
    place: Pair = field(
        default=Pair("p", 1),
        metadata=spread(
            lambda pair: {"p": pair.name, "q": pair.rows},
            lambda plain: Pair(plain["p"], plain["q"]),
        ),
    )
    as_it_is: Any = None

    DERIVED: ClassVar = {"twice": "doubled"}

    @property
    def doubled(self) -> int:
        return 2 * self.rows


SOUND = Outer(3, ["a"], "b", Inner(0.5, (Pair("x", 2),)), {"k": Inner()}, as_it_is={"z": [1]})


def test_a_dataclass_comes_back_from_its_json_and_derived_values_are_not_read() -> None:
    plain = json.loads(json_bytes(SOUND.to_json()))
    assert Outer.from_json({**plain, "twice": "never read", "of a later release": 1}) == SOUND
    keys = ["rows", "words", "kind", "inner", "by_name", "p", "q", "as_it_is", "twice"]
    assert list(plain) == keys
    assert Outer.from_json({"rows": 1, "words": [], "p": "q", "q": 1}) == Outer(
        1, [], place=Pair("q", 1)
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("rows", value) for value in (True, 1.0, "1", None, 2**100, [])),
        *(("words", value) for value in ("a", {"a": 1}, [1], None)),
        *(("kind", value) for value in ("c", None, ["a"])),
        *(("inner", value) for value in (1, [], {"share": math.nan}, {"share": "x"})),
        *(("inner", {"pairs": value}) for value in ([["x"]], [["x", 1, 2]], [["x", True]], "xy")),
        *(("by_name", value) for value in ({"k": None}, [], {"k": {"share": math.inf}})),
    ],
)
def test_a_value_of_another_type_is_refused(key: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Outer.from_json({**SOUND.to_json(), key: value})


def test_json_has_numbers_of_numpy_and_names_that_are_not_utf_8() -> None:
    assert (
        json_bytes({"n": np.int64(3), "name": "é\udcff"}) == '{"n": 3, "name": "é\\udcff"}'.encode()
    )


@dataclass(frozen=True)
class Shown(JsonView):
    inner: Inner
    latencies_s: tuple[float, ...]

    JSON: ClassVar[View] = {
        "share": "inner.share",
        "most_s": lambda shown: max(shown.latencies_s),
        "inside": {"inner": "inner", "each_s": "latencies_s"},
    }


def test_a_view_writes_its_keys_and_null_for_a_number_without_bound() -> None:
    plain = Shown(Inner(0.5), (1.0, math.inf)).to_json()
    assert json.loads(json_bytes(plain)) == {
        "share": 0.5,
        "most_s": None,
        "inside": {"inner": {"share": 0.5, "pairs": []}, "each_s": [1.0, None]},
    }
