"""What a snapshot is made of, and which are refused; how slots go on: tests/contract."""

from __future__ import annotations

import pickle
from collections import deque
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import NS_PER_SECOND, Batch, ReadTag
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.schedule import Slot
from slackwater.runtime.schedule.slot import VERSION
from tests.support.any_flow import any_flow
from tests.support.states import canonical, differences
from tests.support.told import message_of


def carried(state: Any) -> Any:
    canonical(state)  # nothing but plain values
    return pickle.loads(pickle.dumps(state))  # noqa: S301 - our own bytes


def test_the_comparison_finds_a_field_that_was_forgotten() -> None:
    one, other = slot_of("node-1"), slot_of("node-1")
    assert differences(one, other) == []
    one._credit["forgotten"] = 1
    name, machine = next(iter(one.stages.items()))
    machine.report.rows_out += 1
    machine.forgotten = 3  # type: ignore[attr-defined]
    found = differences(one, other)
    assert "Slot._credit" in found[0]
    assert f"Slot._stages[{name!r}].forgotten: only one has it" in found
    assert any("report.rows_out: 1 and 0" in path for path in found)
    assert len(found) == 3


def slot_of(name: str, *, seed: int = 3, is_sampled: bool = False) -> Slot:
    interval_ns = NS_PER_SECOND if is_sampled else None
    part = replace(slot_plan(any_flow(seed), name), interval_ns=interval_ns)
    return Slot.of(part, start_ns=0)


def test_a_snapshot_of_another_version_or_of_other_stages_is_refused_with_the_way_out() -> None:
    one, other = any_flow(3).slot_names[:2]
    state = slot_of(one).snapshot()
    with pytest.raises(
        SettingError, match=f"of version 0, and this release reads version {VERSION}"
    ):
        slot_of(one).restore({**state, "version": 0})
    with pytest.raises(SettingError, match=f"slot '{other}' cannot go on .* it has the stages"):
        slot_of(other).restore(state)


def test_what_is_no_plain_value_is_named_where_it_lies() -> None:
    with pytest.raises(TypeError, match=r"both\.gate\.seen\[1\] is a Fraction, which is not a"):
        to_plain({"gate": {"seen": [1, Fraction(1, 2)]}}, where="both")


def test_plain_values_come_back_as_what_they_were() -> None:
    text = pa.array(["a", None, "c"])[1:]
    batch = Batch(
        event_time_ns=np.array([1, 2]),
        stimulus_time_ns=np.array([3, 4]),
        columns={"x": np.array([0.5, np.nan]), "t": text},
    )
    batch.columns["n"] = Nullable(np.array([1, 0]), np.array([True, False]))
    state = {
        "queue": deque([(1, message_of(batch, 5, 6, ReadTag(1, 2, 0, 4)), 7)]),
        "came": {3: 10, 1: 20},
        "number": np.int64(7),
    }
    queued, came = [(1, state["queue"][0][1], 7)], state["came"]  # type: ignore[index]
    found = from_plain(carried(to_plain(state)))
    assert differences(found, {"queue": queued, "came": came, "number": 7}) == []


def test_a_slice_of_text_does_not_take_along_what_it_is_a_slice_of() -> None:
    text = pa.array(["x" * 100] * 10_000)
    assert len(pickle.dumps(to_plain({"text": text[5:6]}))) < 1_000
