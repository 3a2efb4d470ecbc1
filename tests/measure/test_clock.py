"""The reference's time: within its stated error, whatever the network and the clocks do."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.measure.clock import DRIFT_PPM, Exchange, OffsetEstimate, ReferenceClock

US, MS, SECOND, HOUR = 10**3, 10**6, 10**9, 3_600 * 10**9
NOW = 1_700_000_000 * SECOND


def exchange(*times: int) -> Exchange:
    return Exchange(*times)


@dataclass
class Clocks:
    """Ours, and the reference's: `ahead_ns` of ours at NOW, and drifting away from there."""

    ahead_ns: int
    drift_ppm: int = 0
    local_ns: int = NOW

    def now_ns(self) -> int:
        return self.local_ns

    def reference_ns(self, local_ns: int) -> int:
        return local_ns + self.ahead_ns + (local_ns - NOW) * self.drift_ppm // 1_000_000

    def exchange(self, there_ns: int, held_ns: int, back_ns: int) -> Exchange:
        """Let the time of an exchange pass, and return it."""
        sent_ns = self.local_ns
        got_ns = sent_ns + there_ns
        self.local_ns = got_ns + held_ns + back_ns
        left_ns = got_ns + held_ns
        return Exchange(
            sent_ns, self.reference_ns(got_ns), self.reference_ns(left_ns), self.local_ns
        )


shifts = st.sampled_from([0, MS, -5 * MS, 60 * SECOND, HOUR, -HOUR, 30 * 24 * HOUR])
shifts |= st.integers(-2 * HOUR, 2 * HOUR)
drifts = st.integers(-DRIFT_PPM, DRIFT_PPM)
delays = st.integers(US, 50 * MS) | st.integers(US, 20 * SECOND)
# (waiting before it, there, held, back)
exchanges = st.tuples(st.integers(0, 30 * SECOND), delays, st.integers(0, MS), delays)


def test_offset_and_round_trip_are_those_of_the_thesis() -> None:
    one = exchange(100, 1_130, 1_140, 160)  # 30 there, 10 held, 20 back; we are 1,000 behind
    assert one.round_trip_ns == 50
    assert one.offset_ns == 1_005  # Eq. 3.13; half the difference of the ways is its error
    assert abs(one.offset_ns - 1_000) <= one.round_trip_ns / 2  # Eq. 3.14


@pytest.mark.parametrize(
    ("times", "is_sound"),
    [
        ((0, 10, 20, 40), True),
        ((0, 10, 20, 10), True),
        ((0, 10, 20, 9), False),
        ((0, 20, 10, 40), False),
        ((40, 10, 20, 0), False),
        ((0, 10**9, 10**9, -1), False),
    ],
)
def test_an_exchange_in_which_time_ran_backwards_is_not_sound(
    times: tuple[int, int, int, int], is_sound: bool
) -> None:
    assert exchange(*times).is_sound is is_sound


def test_the_exchange_of_the_least_error_counts() -> None:
    clocks = Clocks(ahead_ns=7 * SECOND)
    estimate = OffsetEstimate()
    estimate.add(clocks.exchange(5 * MS, 0, MS))
    estimate.add(clocks.exchange(100 * US, 0, 100 * US))
    estimate.add(clocks.exchange(MS, 0, 9 * MS))
    assert estimate.exchanges == 3
    assert estimate.round_trip_ns == 200 * US
    assert estimate.offset_ns == 7 * SECOND


@given(shifts, st.lists(st.tuples(delays, st.integers(0, MS), delays), min_size=1, max_size=10))
def test_of_a_series_the_quickest_counts_and_the_truth_is_within_half_its_round_trip(
    ahead_ns: int, series: list[tuple[int, int, int]]
) -> None:
    """[thesis] Eq. 3.14, minimum filter: for any delays, as far as the clocks do not drift."""
    clocks = Clocks(ahead_ns)
    estimate = OffsetEstimate()
    assert all(estimate.add(clocks.exchange(*steps)) for steps in series)
    aged_ns = (clocks.local_ns - NOW) * DRIFT_PPM // 1_000_000
    assert estimate.round_trip_ns <= min(there + back for there, _, back in series) + 2 * aged_ns
    assert abs(estimate.offset_ns - ahead_ns) <= estimate.round_trip_ns // 2 + 1


def test_an_old_exchange_gives_way_to_one_that_is_worse_by_less_than_it_has_aged() -> None:
    clocks = Clocks(ahead_ns=0)
    estimate = OffsetEstimate()
    estimate.add(clocks.exchange(100 * US, 0, 100 * US))
    clocks.local_ns += 5 * SECOND  # 0.5 ms at 100 ppm
    estimate.add(clocks.exchange(600 * US, 0, 700 * US))
    assert estimate.round_trip_ns == 200 * US
    estimate.add(clocks.exchange(500 * US, 0, 500 * US))
    assert estimate.round_trip_ns == MS


def test_the_error_of_a_silent_reference_grows_with_age() -> None:
    clocks = Clocks(ahead_ns=HOUR)
    clock = ReferenceClock(clocks.now_ns)
    clock.learn(clocks.exchange(MS, 0, MS), at_once=True)
    fresh = clock.error_ns()
    assert MS <= fresh <= MS + US
    clocks.local_ns += 100 * SECOND
    assert clock.error_ns() - fresh == pytest.approx(10 * MS, abs=US)


@given(shifts, drifts, st.lists(exchanges, min_size=1, max_size=30), st.integers(0, 300 * SECOND))
def test_the_true_time_is_within_the_error_for_any_delays_and_drift(
    ahead_ns: int, drift_ppm: int, steps: list[tuple[int, ...]], later_ns: int
) -> None:
    clocks = Clocks(ahead_ns, drift_ppm)
    clock = ReferenceClock(clocks.now_ns)
    worst = 0
    for number, (wait_ns, *delays_ns) in enumerate(steps):
        clocks.local_ns += wait_ns
        if number:
            worst = max(worst, check(clocks, clock))
        one = clocks.exchange(*delays_ns)
        if one.is_sound:
            clock.learn(one, at_once=number == 0)
        else:  # the drift within it was more than its delays
            assert one.round_trip_ns < 0
            return
        worst = max(worst, check(clocks, clock))
    clocks.local_ns += later_ns
    worst = max(worst, check(clocks, clock))
    assert worst <= clock.largest_error_ns


def check(clocks: Clocks, clock: ReferenceClock) -> int:
    off_ns = abs(clock.now_ns() - clocks.reference_ns(clocks.local_ns))
    assert off_ns <= clock.error_ns() <= clock.largest_error_ns
    return off_ns


def test_two_clocks_that_are_each_off_by_as_much_as_quartz_is_stay_within_the_error() -> None:
    clocks = Clocks(ahead_ns=HOUR, drift_ppm=60)  # 30 ppm, one fast and one slow
    clock = ReferenceClock(clocks.now_ns)
    clock.learn(clocks.exchange(US, 0, US), at_once=True)
    for _ in range(20):
        clocks.local_ns += 100 * SECOND
        check(clocks, clock)


@given(shifts, drifts, st.lists(exchanges, min_size=2, max_size=30), st.data())
def test_a_new_estimate_changes_no_time_span_by_more_than_half_a_percent(
    ahead_ns: int, drift_ppm: int, steps: list[tuple[int, ...]], data: st.DataObject
) -> None:
    clocks = Clocks(ahead_ns, drift_ppm)
    clock = ReferenceClock(clocks.now_ns)
    clock.learn(clocks.exchange(*steps[0][1:]), at_once=True)
    seen = [(clocks.local_ns, clock.now_ns())]
    for wait_ns, *delays_ns in steps[1:]:
        for part in data.draw(st.lists(st.integers(0, wait_ns), max_size=3)):
            clocks.local_ns += part
            seen.append((clocks.local_ns, clock.now_ns()))
        one = clocks.exchange(*delays_ns)
        if one.is_sound:
            clock.learn(one)
        seen.append((clocks.local_ns, clock.now_ns()))
    for (local, reference), (next_local, next_reference) in itertools.pairwise(seen):
        passed = next_local - local
        assert next_reference >= reference
        # A rounded nanosecond for each exchange in between, of which there is at most one.
        assert abs((next_reference - reference) - passed) <= passed / 256 + 2


def setting(by_ns: int) -> Callable[[Clocks], None]:
    def set_ours(clocks: Clocks) -> None:
        clocks.local_ns += by_ns
        clocks.ahead_ns -= by_ns

    return set_ours


@pytest.mark.parametrize("by_ns", [HOUR, -HOUR, SECOND, -SECOND])
def test_a_clock_that_is_set_is_followed_at_once_and_owned_up_to(by_ns: int) -> None:
    clocks = Clocks(ahead_ns=5 * SECOND)
    clock = ReferenceClock(clocks.now_ns)
    clock.learn(clocks.exchange(MS, 0, MS), at_once=True)
    clocks.local_ns += SECOND
    setting(by_ns)(clocks)
    clocks.local_ns += MS
    off_ns = clock.now_ns() - clocks.reference_ns(clocks.local_ns)
    assert off_ns == by_ns  # nobody can know yet
    clock.learn(clocks.exchange(2 * MS, 0, 2 * MS))
    assert clock.now_ns() == clocks.reference_ns(clocks.local_ns)
    assert clock.error_ns() < 3 * MS
    assert clock.largest_error_ns >= abs(by_ns)


def test_an_own_clock_is_right_without_an_exchange() -> None:
    clocks = Clocks(ahead_ns=0)
    clock = ReferenceClock(clocks.now_ns)
    clocks.local_ns += HOUR
    assert clock.now_ns() == clocks.local_ns
    assert clock.error_ns() == clock.largest_error_ns == 0
    told = clock.report("node-1")
    assert told.is_reference
    assert (told.offset_ns, told.exchanges) == (0, 0)


def test_a_clock_tells_what_it_goes_by() -> None:
    clocks = Clocks(ahead_ns=-HOUR)
    clock = ReferenceClock(clocks.now_ns)
    for _ in range(3):
        clock.learn(clocks.exchange(MS, 0, MS), at_once=True)
    told = clock.report("node-2", refused=4)
    assert not told.is_reference
    assert (told.node, told.offset_ns, told.round_trip_ns) == ("node-2", -HOUR, 2 * MS)
    assert (told.exchanges, told.refused) == (3, 4)
    assert told.error_ns <= told.largest_error_ns < MS + US
