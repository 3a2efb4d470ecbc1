"""What a user writes behind `shed=`, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.espice.rivals import baseline_shedding, random_shedding
from slackwater.runtime.errors import SettingError
from slackwater.runtime.shedding.contest import ContestShedder
from slackwater.runtime.shedding.espice import EspiceShedder
from slackwater.runtime.shedding.settings import Model, Overload
from slackwater.runtime.shedding.wrapper.words import Espice, espice


def test_a_bound_in_words_is_all_that_is_needed() -> None:
    assert espice("1s") == Espice(Overload(1_000_000_000), drops="stretches")
    assert espice(latency=0.5, f=0.7, seed=4, drops="events", cells=100) == Espice(
        Overload(500_000_000, 0.7), Model(cells=100), 4
    )
    assert isinstance(espice("1s").shedder({}), EspiceShedder)
    assert isinstance(espice("1s", feature="whatever").shedder({}), ContestShedder)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"latency": "soon"}, "latency='soon' is not a length of time"),
        ({"latency": 0}, "latency=0 must be more than zero"),
        ({"latency": "1s", "f": 1.0}, "f=1.0 must be above 0 and below 1"),
        ({"latency": "1s", "f": 0}, "f=0 must be above 0 and below 1"),
        ({"latency": "1s", "f": "0.8"}, "f='0.8' must be above 0"),
        ({"latency": "1s", "f": float("nan")}, "f=nan must be above 0"),
        ({"latency": "1s", "seed": 1.5}, "seed=1.5 must be a whole number"),
        ({"latency": "1s", "seed": -1}, "seed=-1 must be a whole number"),
        ({"latency": "1s", "seed": True}, "seed=True must be a whole number"),
        ({"latency": "1s", "cells": 0}, "cells=0 must be a whole number, from 1 to 65536"),
        ({"latency": "1s", "scale": "best"}, "scale='best' is none of 'rank', 'probability'"),
        ({"latency": "1s", "scale": ["rank"]}, "scale=['rank'] is none of 'rank', 'probability'"),
        ({"latency": "1s", "keep": 1.5}, "keep=1.5 must be a number from 0 to 1"),
        ({"latency": "1s", "explore": 0, "sample": 0}, "learn from nothing"),
        ({"latency": 10**30}, "must be 73 years at most"),
        ({"latency": "1s", "detect": "no"}, "detect='no' must be True or False"),
        ({"latency": "1s", "detect": None}, "detect=None must be True or False"),
        (
            {"latency": "1s", "bins": 3},
            "espice: there is no setting 'bins'; there are cells",
        ),
    ],
)
def test_what_is_out_of_its_range_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError) as caught:
        espice(**given)
    assert said in str(caught.value)


def test_settings_without_effect_are_refused() -> None:
    with pytest.raises(SettingError, match="cells= has no effect with drops='stretches'"):
        espice("1s", cells=5, drops="stretches")
    with pytest.raises(SettingError, match="so feature= has no effect"):
        espice("1s", feature="whatever", drops="stretches")
    with pytest.raises(SettingError, match="drops='stretches' is none of 'events', 'pairs'"):
        random_shedding("1s", drops="stretches")
    with pytest.raises(SettingError, match=r"there are explore, sample$"):
        random_shedding("1s", cells=5)
    with pytest.raises(SettingError, match="no setting 'cells'; there are every, explore, first"):
        baseline_shedding("1s", cells=5)


@pytest.mark.parametrize("word", [espice, baseline_shedding, random_shedding])
def test_a_bound_shorter_than_a_slice_is_refused(word: Any) -> None:
    assert word("1ms").overload.latency_ns == 1_000_000
    with pytest.raises(SettingError, match=r"latency='999us' is shorter than 1\.00 ms"):
        word("999us")
