"""Lengths of time, as people write them."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import numpy as np
import pytest

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Duration, duration_ns

TOO_LONG = [1e308, np.float64(1e300), 10**30, "9" * 400 + "s", timedelta.max]


@pytest.mark.parametrize("value", TOO_LONG, ids=range(len(TOO_LONG)))
def test_a_length_that_no_float_holds_is_refused_as_too_long(value: Duration) -> None:
    with pytest.raises(SettingError, match=r"slack=.* must be 73 years at most"):
        duration_ns(value, what="slack")


def test_a_negative_length_that_no_float_holds_is_refused_as_negative() -> None:
    with pytest.raises(SettingError, match="must be zero or more"):
        duration_ns(-1e308)


@pytest.mark.parametrize("seconds", [np.int64(3), np.uint8(3), np.float32(3), Fraction(6, 2)])
def test_seconds_may_be_numbers_of_any_kind(seconds: Duration) -> None:
    assert duration_ns(seconds) == 3_000_000_000
