"""What shedding costs, told from windows that are tried, beside what it does cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

import slackwater as sw
from benchmarks.espice.rivals import random_shedding
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.patterns.language import Seq
from slackwater.runtime.patterns.normalise import normal_of
from slackwater.runtime.patterns.rules import rules_of
from slackwater.runtime.patterns.scopes import OpenedWindows, TimeWindows
from slackwater.runtime.patterns.settings import Settings
from slackwater.runtime.shedding.counts import SheddingCounts
from slackwater.runtime.shedding.losses import Judged
from slackwater.runtime.shedding.shedder import Amount
from slackwater.runtime.shedding.wrapper.open_windows import KeyWindows, OpenWindow
from slackwater.runtime.shedding.wrapper.what_if import Seen, Trial, judged
from slackwater.runtime.shedding.wrapper.words import Espice, espice
from tests.operators.test_pattern_shedding import leaves, read_of, step_of
from tests.patterns.worlds import no_condition
from tests.support.shedders import shed_machine

A, B, C = (sw.patterns.event(name, of_type=kind) for kind, name in enumerate("abc"))
PATTERNS: dict[str, Seq] = {
    "a sequence": sw.patterns.seq(A, B, C),
    "any of one kind": sw.patterns.seq(A, sw.patterns.any_of(2, B, C)),
    "what must not come": sw.patterns.seq(A, sw.patterns.no(B), C),
    "what must not come at the end": sw.patterns.seq(A, B, sw.patterns.no(C)),
    "repeated": sw.patterns.seq(A, sw.patterns.repeat(B, 2), C),
}


def settings_of(pattern: Seq, **settings: Any) -> Settings:
    found = rules_of(normal_of(pattern, step="p"), skip="any")
    given = {"selection": "first", "consumes": True, "most": None} | settings
    return Settings(found, OpenedWindows(0, span_ns=100), **given)


def trial_of(kinds: list[int], lost: set[int], fits: Callable[[int], tuple[int, ...]]) -> Trial:
    events = [Seen(n, n, n, fits(kind), None, n in lost) for n, kind in enumerate(kinds, 1)]
    return Trial(1, 8.0, False, events)


def fits_abc(kind: int) -> tuple[int, ...]:
    """A is asked first, then B, then C."""
    return (kind,)


def test_a_match_whose_event_is_lost_is_lost_and_what_stands_in_for_it_is_false() -> None:
    one = trial_of([0, 1, 2, 1, 2], {2}, fits_abc)
    found, matches = judged(one, settings_of(PATTERNS["a sequence"], most=1), no_condition)
    assert found == Judged(1, 1, 1)
    assert matches == [((1, 0), (2, 1), (3, 2))]


def test_what_is_found_because_what_forbids_it_is_lost_is_false() -> None:
    pattern = normal_of(PATTERNS["what must not come"], step="p")
    names = [asked.name for asked in pattern.asked]
    one = trial_of([0, 1, 2], {2}, lambda kind: (names.index("abc"[kind]),))
    found, _ = judged(one, settings_of(PATTERNS["what must not come"]), no_condition)
    assert found == Judged(0, 0, 1)


def test_what_waits_for_the_end_of_its_window_is_decided_there() -> None:
    pattern = normal_of(PATTERNS["what must not come at the end"], step="p")
    names = [asked.name for asked in pattern.asked]
    one = trial_of([0, 1, 2], {3}, lambda kind: (names.index("abc"[kind]),))
    found, _ = judged(one, settings_of(PATTERNS["what must not come at the end"]), no_condition)
    assert found == Judged(0, 0, 1)


def test_a_window_that_would_lose_nothing_needs_no_second_look() -> None:
    one = trial_of([0, 1, 2], set(), fits_abc)
    found, _ = judged(one, settings_of(PATTERNS["a sequence"]), no_condition)
    assert found == Judged(1, 0, 0)


def test_a_trial_survives_a_snapshot() -> None:
    one = trial_of([0, 1, 2], {2}, fits_abc)
    windows, again = (KeyWindows(TimeWindows(10, 10)) for _ in range(2))
    windows.open.append(OpenWindow(0, 1, None, 10, 0, 5, 0, is_whole=False, trial=one))
    restore(again, from_plain(to_plain(save(windows))))
    assert again.open == windows.open


# -- beside the truth -------------------------------------------------------------------------

EVENTS, READ = 32_000, 2_000


def stream() -> list[int]:
    """Return eight types, some likelier at the beginning of each forty."""
    chance = Random(4)  # noqa: S311 - to be repeatable
    return [chance.choice((0, 1, 2) if n % 40 < 8 else range(8)) for n in range(EVENTS)]


KINDS = stream()


def ran(pattern: Seq, shed: Espice, share: float | None) -> tuple[set[Any], SheddingCounts]:
    """Return all matches of windows that open when so much is dropped, and what is told."""
    normal = normal_of(pattern, step="found")
    machine = shed_machine(step_of(shed, TimeWindows(40, 10), pattern=normal), most_kept_rows=10**9)
    batches = []
    for begin in range(0, EVENTS, READ):
        if begin == EVENTS // 4 and share is not None:
            overload = machine._shedding._shedding
            overload._began_ns = 0
            overload.shedder.aim(Amount(share))
        times = np.arange(begin, begin + READ)
        batches.append(machine.work(read_of(times, KINDS[begin : begin + READ], begin), 0).rows)
    counts = machine.counts()["shedding"]
    assert counts is not None
    return {one for one in leaves(batches) if one[1] >= EVENTS // 4}, counts


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a sequence", partial(espice, drops="events")),
        ("any of one kind", random_shedding),
        ("what must not come", random_shedding),
    ],
)
def test_what_is_told_is_near_what_is_lost(name: str, make: Any) -> None:
    """Windows of 40 events, one each 10: of 2,400 some 75 are tried, till enough is known."""
    every, _ = ran(PATTERNS[name], make("1h", drops="pairs"), None)
    for drops in ("pairs", "events"):
        found, counts = ran(PATTERNS[name], make("1h", drops=drops), 0.3)
        lost = len(every - found) / len(every)
        assert 0 < counts.judged_error < 0.1
        assert counts.judged_lost_share == pytest.approx(lost, abs=2.5 * counts.judged_error), drops
        false = len(found - every) / len(every)
        assert counts.judged_false_share == pytest.approx(false, abs=0.15), drops
