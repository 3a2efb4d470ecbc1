"""Chances that are stated after streaks of missed windows, and by a restored calibration."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.closing.calibration import Calibration, Outcomes
from slackwater.runtime.closing.happenings import Settled
from slackwater.runtime.closing.policy import FloatArray
from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.state import restore, save

NOTHING = np.empty(0, dtype=np.int64)


def closed(first: int, size: int, *, at_ns: int) -> Settled:
    windows = np.arange(first, first + size)
    return Settled(
        windows, np.full(size, at_ns), np.ones(size, dtype=np.bool_), NOTHING, NOTHING, None
    )


def taught(raw: FloatArray, missed: BoolArray) -> Calibration:
    """Return a calibration that knows these windows: a row came late for each that missed."""
    calibration, size = Calibration(states_zero=False), len(raw)
    late: Int64Array = np.flatnonzero(missed)
    outcomes = Outcomes(np.array([3]), np.array([size]), np.full(len(late), 2), late, late)
    calibration.stated(closed(0, size, at_ns=1), raw, outcomes)
    return calibration


def stated(calibration: Calibration, raw: FloatArray) -> FloatArray:
    nothing = Outcomes(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
    return calibration.stated(closed(1_000_000, len(raw), at_ns=4), raw, nothing)


def test_a_streak_of_missed_windows_teaches_less_than_as_many_alone() -> None:
    raw = np.full(200, 0.05)
    alone, streak = np.zeros((2, 200), dtype=np.bool_)
    alone[::4], streak[100:150] = True, True  # a quarter of each
    of_alone, of_streak = (stated(taught(raw, of), raw[:1])[0] for of in (alone, streak))
    assert of_alone > 0.2
    assert of_streak < 0.1


def test_a_restored_calibration_states_the_same() -> None:
    missed = np.zeros(200, dtype=np.bool_)
    missed[100:150] = True
    first, second = taught(np.full(200, 0.05), missed), Calibration(states_zero=False)
    restore(second, save(first))
    raw = np.geomspace(1e-3, 1.0, 50)
    assert stated(second, raw).tolist() == stated(first, raw).tolist()
