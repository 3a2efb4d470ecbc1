"""The ways to put rows in order that are held against each other, each with the settings tried."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from benchmarks.order.disorder import Arrivals
from benchmarks.order.replay import Outcome, buffered, sequenced
from slackwater.runtime.order.aq_k_slack import aq_k_slack
from slackwater.runtime.order.k_slack import k_slack, mp_k_slack
from slackwater.runtime.order.sequence import by_sequence

ENOUGH = 99.97
"""Percent of the rows out of order that are to be mended."""
MAY_STAY = 3.0
"""The same, as what may stay out of order of 10,000: a claim shows three digits."""

CAPS_MS = (2, 5, 10, 20, 50, 100, 150, 200, 220, 250, 300, 400, 500)
QUICK_CAPS_MS = (5, 50, 220, 500)
FEWER_CAPS_MS = (2, 5, 20, 50, 220, 500)
"""For readings of the timer whose curve is flat, or that no claim is about."""
THESIS_MS = 500
"""The longest wait of the thesis' experiments, Query 5.3."""
ONE_MS = 220
"""One for all three datasets, whatever is drawn: what a far delay costs grows with its square."""

WINDOWS = ("10ms", "100ms", "1s")
COVERAGES = (0.999, 0.9999, 0.99996, 0.99999)
GAINS = (0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)
AS_IT_COMES = ("1s", 0.99996, 0.05)
"""AQ-K-slack with our default gains: an eighth of all rows is behind; 3 in 10,000 may miss."""

K_SLACK, MP, AQ = "K-slack", "MP-K-slack", "AQ-K-slack"
PLAIN, LEARNING = "Eq. 3.11", "learns from late"
RESTARTED, MENDED = "timer restarts", "restarts, 1 ms at least"
READINGS: dict[str, dict[str, Any]] = {
    PLAIN: {"restart": "first"},
    LEARNING: {"restart": "first", "learns_from_late": True},
    RESTARTED: {"restart": "added"},
    MENDED: {"restart": "added", "least": "1ms"},
}
"""The timer of a missing number: from the first row behind it, as the thesis can be read; the same,
learning from rows that came too late, which is ours; again from each row that is put behind it, as
the thesis can be read too; and that with a floor, which is ours."""


def of_k_slack(stream: Arrivals, caps_ms: Iterable[int]) -> list[Outcome]:
    """Return K-slack with K of these lengths."""
    return [buffered(f"{K_SLACK}, {ms} ms", k_slack(f"{ms}ms"), stream) for ms in caps_ms]


def of_mp(stream: Arrivals, caps_ms: Iterable[int]) -> list[Outcome]:
    """Return MP-K-slack, first as it is, then such that delays above a cap do not count."""
    capped = [
        buffered(f"{MP}, {ms} ms at most", mp_k_slack(at_most=f"{ms}ms"), stream) for ms in caps_ms
    ]
    return [buffered(MP, mp_k_slack(), stream), *capped]


def of_aq(stream: Arrivals, *, quick: bool) -> list[Outcome]:
    """Return AQ-K-slack with default gains, then with all settings tried."""
    windows, gains = (WINDOWS[1:], GAINS[::2]) if quick else (WINDOWS, GAINS)
    settings = [AS_IT_COMES, *product(windows, COVERAGES, gains)]
    return [
        buffered(
            f"{AQ}, {window}, {coverage:.7g}, {gain:g}",
            aq_k_slack(window=window, coverage=coverage, gains=(gain, gain / 10)),
            stream,
        )
        for window, coverage, gain in settings
    ]


def of_sequence(
    stream: Arrivals, reading: str, caps_ms: Iterable[int], **settings: Any
) -> list[Outcome]:
    """Return order by number with this reading of the timer, and these longest waits."""
    return [
        sequenced(
            f"sequence, {reading}, {ms} ms",
            by_sequence(late="pass", timeout=f"{ms}ms", **READINGS[reading], **settings),
            stream,
        )
        for ms in caps_ms
    ]


def best(outcomes: Iterable[Outcome], *, enough: float = ENOUGH) -> Outcome:
    """Return the one of least mean latency of those that mend enough; if none, the most exact."""
    found = list(outcomes)
    exact = [one for one in found if one.accuracy >= enough]
    if exact:
        return min(exact, key=lambda one: one.mean_ms)
    return max(found, key=lambda one: one.accuracy)
