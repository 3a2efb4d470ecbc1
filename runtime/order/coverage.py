"""Window coverage θ, AQ-K-slack's measure of quality: rows that count / rows of the window.

The coverage that is needed is given, or follows from the error that a result may have
(`error_within`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from slackwater.runtime.calls import checked_options
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.settings import is_number
from slackwater.runtime.shown import shown

Of = Literal["count", "sum", "mean"]
_OF = ("count", "sum", "mean")


@checked_options
def error_within(
    error: float, *, delta: float = 0.05, of: Of = "mean", spread: float = 1.0
) -> ErrorWithin:
    """Return the error allowed in a window's result, as a demand on its coverage.

    Args:
        error: ε_thr, the relative error that a result may have, 0 < error < 1.
        delta: δ, the chance of a larger error, 0 < delta < 1.
        of: the aggregate: "count", "sum" or "mean".
        spread: standard deviation / mean of the values, >= 0. A count has none.

    Raises:
        SettingError: a setting is out of its range.

    Source: [thesis] §2.3.3, (ε_thr, δ); how θ_thr follows is in `ErrorWithin.coverage`.
    """
    return ErrorWithin(error, delta, of, spread)


@dataclass(frozen=True)
class ErrorWithin:
    """Bound on the error of a result; its settings are those of `error_within`."""

    error: float
    delta: float
    of: Of
    spread: float

    def __post_init__(self) -> None:
        for name, value in (("error", self.error), ("delta", self.delta)):
            if not (is_number(value) and 0 < value < 1):
                raise SettingError(
                    f"error_within: {name}={shown(value)} must lie between 0 and 1, both excluded; "
                    "for a hundredth write 0.01"
                )
        if self.of not in _OF:
            raise SettingError(
                f"error_within: of={shown(self.of)} must be one of {', '.join(map(repr, _OF))}"
            )
        if not (is_number(self.spread) and 0 <= self.spread < math.inf):
            raise SettingError(
                f"error_within: spread={shown(self.spread)} must be zero or more; give the values' "
                "standard deviation / mean"
            )

    @property
    def text(self) -> str:
        """Text of the bound in `explain`."""
        return f"each {self.of} within {self.error:.6g} but for a share of {self.delta:.6g}"

    def coverage(self, rows: int) -> float:
        """Return θ_thr of a window with n > 0 rows.

        It is 1 − m, with m the share of rows that may miss. m follows from the central limit
        theorem, if the missing rows are a random sample of the window; z is the quantile of the
        normal distribution.

            mean:  z · spread · √(m / ((1 − m) n)) = ε       z of 1 − δ/2: errors go either way
            sum:   m + z · spread · √(m (1 − m) / n) = ε     z of 1 − δ: missing rows make it less

        The error of a count is the missing share itself. At least one row has to be there.

        Source: [thesis] §2.3.3: θ_thr follows from (ε_thr, δ) by "statistical inequalities and the
        central limit theorem"; it does not say how. Its Probability(ε < ε_thr) ≤ δ is a slip: the
        error shall be *above* ε_thr so seldom.
        """
        if self.of == "mean":
            noise = NormalDist().inv_cdf(1 - self.delta / 2) * self.spread
            odds = math.inf if noise == 0 else rows * (self.error / noise) ** 2
            return max(1 / (1 + odds), 1 / (1 + rows))
        z = 0.0 if self.of == "count" else max(NormalDist().inv_cdf(1 - self.delta), 0.0)
        c = (z * self.spread) ** 2 / rows  # (ε − m)² = c m (1 − m), the lesser m
        b = 2 * self.error + c
        misses = (b - math.sqrt(b * b - 4 * (1 + c) * self.error**2)) / (2 * (1 + c))
        return 1 - misses


class Coverage:
    """Counts of rows, and of rows in time, for each stretch of event time.

    Args:
        window_ns: length of a stretch. The first begins at time 0.
    """

    STATE = Fields("_counts", "_closed")

    def __init__(self, window_ns: int) -> None:
        self._window_ns = window_ns
        self._counts: dict[int, tuple[int, int]] = {}  # {stretch: (rows, rows in time)}
        self._closed = -(2**63)  # stretches up to this one have been taken

    def add(self, event_time_ns: Int64Array, in_time: BoolArray) -> None:
        """Count these rows; both shape (rows,). Stretches already taken do not count."""
        stretch = event_time_ns // self._window_ns
        first, last = int(stretch.min()), int(stretch.max())
        if last - first < 4 * len(stretch):
            here = stretch - first
            rows = np.bincount(here)
            timely = np.bincount(here[in_time], minlength=len(rows))
            with_rows = np.flatnonzero(rows)
            numbers = with_rows + first
            rows, timely = rows[with_rows], timely[with_rows]
        else:  # far apart: a wrong clock, or hardly any rows
            numbers, here = np.unique(stretch, return_inverse=True)
            rows = np.bincount(here)
            timely = np.bincount(here[in_time], minlength=len(rows))
        for number, came, counted in zip(
            numbers.tolist(), rows.tolist(), timely.tolist(), strict=True
        ):
            if number > self._closed:
                known = self._counts.get(number, (0, 0))
                self._counts[number] = (known[0] + came, known[1] + counted)

    def take(self, until_ns: int) -> list[tuple[int, int]]:
        """Return (rows, rows in time) of stretches that end by then, and forget them."""
        last = until_ns // self._window_ns - 1
        self._closed = max(self._closed, last)
        done = sorted(number for number in self._counts if number <= last)
        return [self._counts.pop(number) for number in done]
