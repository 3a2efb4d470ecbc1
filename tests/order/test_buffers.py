"""K-slack buffers: what leaves when, what is late, and that no cut of the input shows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.order.buffer import Buffering
from slackwater.runtime.order.largest_delay import LargestDelay
from slackwater.runtime.order.reorder import Reorder
from tests.support.buffers import buffered, largest_delays, left, rest
from tests.support.flows import simulated
from tests.support.sources import Stuttering, block, drain, machine, times
from tests.support.states import canonical, differences

FIG_2_6 = [1, 4, 3, 5, 6, 9, 7, 8, 10, 13]
POLICIES: list[Any] = [
    sw.order.k_slack("3ns"),
    sw.order.mp_k_slack(at_most="20ns"),
    sw.order.mp_k_slack(at_most="20ns", delay_from="newest"),
    sw.order.aq_k_slack(window="10ns", coverage=0.8, at_most="20ns"),
    sw.order.aq_k_slack(window="10ns", coverage=0.8, at_most="20ns", late="pass"),
    sw.order.aq_k_slack(window="10ns", coverage=sw.order.error_within(0.1), at_most="20ns"),
    sw.order.ldop(window="4ns", factor=1.5, at_most="20ns"),
    sw.order.mp_k_slack(at_most="20ns", late="pass"),
]
rows = st.lists(st.integers(-5, 60), min_size=1, max_size=80).map(
    lambda shifts: [2 * place - shift // 3 for place, shift in enumerate(shifts)]
)
cuts = st.lists(st.integers(0, 80), max_size=6)


def test_mp_k_slack_releases_the_papers_example_in_its_order() -> None:
    order = sw.order.mp_k_slack(late="pass").begin()
    out, late, _ = left(order, FIG_2_6)
    assert (out, late) == ([1, 4, 3, 5, 6, 7, 8, 9, 10], [3])
    assert rest(order) == [13]


def test_a_row_that_left_at_once_can_make_one_late_that_the_paper_puts_in_order() -> None:
    # The paper looks at its buffer when 12 comes, and lets 4 and 5 go then.
    source = machine({"t": [1, 10, 5, 4, 12]}, out_of_order=sw.order.k_slack("2ns"))
    assert times(drain(source)) == [1, 5, 10, 12]
    assert source.late_dropped == 1


def test_k_of_mp_k_slack_moves_with_the_newest_as_in_the_papers_example() -> None:
    newest = np.maximum.accumulate(np.array(FIG_2_6))
    k_ns = LargestDelay(1_000, "next").extend(np.array(FIG_2_6), newest)
    assert k_ns.tolist() == [0, 0, 0, 2, 2, 2, 2, 2, 3, 3]


def test_a_silence_behind_a_late_row_is_a_delay_only_as_the_paper_counts() -> None:
    then = [10, 9, 500, 600]
    of: dict[Any, list[int]] = {}
    for delay_from in ("next", "newest"):
        largest = LargestDelay(1_000, delay_from)
        of[delay_from] = largest.extend(np.array(then), np.maximum.accumulate(then)).tolist()
    assert of == {"next": [0, 0, 491, 491], "newest": [0, 0, 1, 1]}


def test_a_row_far_behind_is_late_and_makes_nobody_wait() -> None:
    out, late, _ = left(sw.order.mp_k_slack(at_most="50ns").begin(), [100, 10, 101, 99, 102, 103])
    assert late == [10, 99]
    assert out == [100, 10, 101, 99]  # 102 waits for 3, as 99 came behind 101 and before 102


def test_a_row_that_finds_its_place_is_not_late_however_far_behind_it_is() -> None:
    order = sw.order.k_slack("2ns").begin()
    assert left(order, [1, 10, 5, 12, 3]) == ([1, 5, 10, 3], [3], [START_NS, 1, 5, 10, 10])
    eager = machine({"t": [1, 10, 5, 12, 3]}, out_of_order="sort", disorder_ns=2)
    drain(eager)
    assert eager.late_dropped == 2, "where the promise is the newest less 2, 5 is late too"


@given(rows, st.integers(1, 12))
def test_k_slack_does_what_a_row_at_a_time_would(given_rows: list[int], slack: int) -> None:
    order = sw.order.k_slack(f"{slack}ns").begin()
    out, late, _ = left(order, given_rows, cuts=[len(given_rows) // 2])
    assert (out, late) == buffered(given_rows, [slack] * len(given_rows))


@given(rows, st.sampled_from(["next", "newest"]), st.integers(1, 40))
def test_mp_k_slack_does_what_a_row_at_a_time_would(
    given_rows: list[int], delay_from: Any, at_most: int
) -> None:
    policy = sw.order.mp_k_slack(at_most=f"{at_most}ns", delay_from=delay_from)
    waits = largest_delays(given_rows, at_most=at_most, delay_from=delay_from)
    out, late, _ = left(policy.begin(), given_rows, cuts=[len(given_rows) // 3])
    assert (out, late) == buffered(given_rows, waits)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: one.text)
@given(given_rows=rows, where=cuts)
def test_no_cut_of_the_input_shows(policy: Any, given_rows: list[int], where: list[int]) -> None:
    places = sorted({min(place, len(given_rows)) for place in where})
    whole, cut = policy.begin(), policy.begin()
    assert left(whole, given_rows) == left(cut, given_rows, cuts=places)
    assert rest(whole) == rest(cut)
    assert settled(whole) == settled(cut)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: one.text)
@given(given_rows=rows, where=st.integers(0, 80))
def test_a_snapshot_between_any_two_rows_changes_nothing(
    policy: Any, given_rows: list[int], where: int
) -> None:
    began, went_on = given_rows[:where], given_rows[where:]
    whole, first, again = policy.begin(), policy.begin(), policy.begin()
    out, late, promises = left(first, began)
    restore(again, save(first))
    newest_ns, promised_ns = max(began, default=START_NS), max(promises, default=START_NS)
    more = left(again, went_on, newest_ns=newest_ns, promised_ns=promised_ns)
    assert left(whole, given_rows) == (out + more[0], late + more[1], promises + more[2])
    assert rest(again) == rest(whole)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: one.text)
@given(given_rows=rows, where=cuts, at_once=st.integers(1, 30))
def test_a_source_with_a_buffer_keeps_promises_and_loses_nothing(
    policy: Reorder, given_rows: list[int], where: list[int], at_once: int
) -> None:
    order = policy.begin()
    out, late, _ = left(order, given_rows)
    out += rest(order)
    pieces = np.split(np.array(given_rows), sorted({min(one, len(given_rows)) for one in where}))
    source = machine(Stuttering(*(block(t=one) for one in pieces)), out_of_order=policy)
    taken = drain(source, max_rows=at_once)
    if policy.passes_late:
        assert times(taken) == out, "late rows leave where they came, however rows are cut"
        assert (source.late, source.late_dropped) == (len(late), 0)
        return
    assert sorted([*times(taken), *late]) == sorted(given_rows)
    assert times(taken) == sorted(times(taken))
    assert (source.late, source.late_dropped) == (0, len(late))
    promised_ns = START_NS
    for message in taken:
        assert min(times([message]), default=END_NS) >= promised_ns
        promised_ns = message.progress.promise_ns


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: one.text)
def test_a_policy_travels_and_says_what_it_does_with_late_rows(policy: Any) -> None:
    again = pickle.loads(pickle.dumps(policy))  # noqa: S301 - ours
    assert again == policy
    assert policy.passes_late == policy.may_mix == policy.text.endswith("late rows go on")
    assert differences(again.begin(), policy.begin()) == []


@pytest.mark.parametrize("policy", [one for one in POLICIES if not one.may_mix], ids=repr)
def test_a_flow_with_a_buffer_runs_balances_and_says_so(policy: Any) -> None:
    rng = np.random.default_rng(7)
    rows = pa.table({"t": np.arange(500) + rng.integers(0, 15, 500)})
    flow = sw.Dataflow("buffered")
    source = flow.source("events", sw.table(rows), event_time="t", out_of_order=policy)
    source.aggregate(window=sw.tumbling("50ns"), n=sw.count()).sink("n", sw.collect_sink())
    assert policy.text in flow.explain()
    assert not flow.steps["events"].traits.runs_users_code
    job, report = simulated(flow)
    assert not imbalances(report)
    (of,) = [stage for stage in report.stages if stage.kind == "source"]
    assert sum(job.result("n")["n"].to_pylist()) == 500 - of.late_dropped


def test_what_makes_no_buffer_is_refused() -> None:
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: sw.order.k_slack("0s"), "k_slack: slack=0 ns must be more than zero"),
        (lambda: sw.order.k_slack("2 parsecs"), "k_slack: slack='2 parsecs'"),
        (lambda: sw.order.k_slack("2s", late="lose"), "late='lose' must be 'drop' .* or 'pass'"),  # type: ignore[arg-type]
        (lambda: sw.order.mp_k_slack(at_most="0s"), "mp_k_slack: at_most=0 ns must be more"),
        (
            lambda: sw.order.mp_k_slack(delay_from="now"),
            "delay_from='now' must be 'next' .* 'newest'",
        ),  # type: ignore[arg-type]
        (lambda: aq(coverage=1), "coverage=1 must lie between 0 and 1.*mp_k_slack"),
        (lambda: aq(coverage=0), "coverage=0 must lie"),
        (lambda: aq(quantile=1), "quantile=1 must lie between 0 and 1"),
        (
            lambda: aq(gains=(0, 0)),
            r"gains=\(0, 0\) must be two numbers, .* \(more than zero, zero",
        ),
        (lambda: aq(gains=0.5), "gains=0.5 must be two numbers, K_p and K_d"),
        (lambda: aq(coverage="all"), "coverage='all' must lie between 0 and 1"),
        (lambda: sw.order.error_within(0), "error_within: error=0 must lie between 0 and 1"),
        (lambda: sw.order.error_within(0.1, delta=1), "delta=1 must lie"),
        (
            lambda: sw.order.error_within(0.1, of="max"),
            "of='max' must be one of 'count', 'sum', 'mean'",
        ),  # type: ignore[arg-type]
        (lambda: sw.order.error_within(0.1, spread=-1), "spread=-1 must be zero or more"),
        (lambda: sw.order.ldop(window="0s"), "ldop: window=0 ns must be more"),
        (lambda: sw.order.ldop(window="1s", factor=-1), "factor=-1 must lie between 0 and 1000"),
        (lambda: sw.order.ldop(window="1s", factor="2"), "factor='2' must lie between 0 and 1000"),  # type: ignore[arg-type]
    ]
    for make, said in wrong:
        with pytest.raises(SettingError, match=said):
            make()


def aq(**settings: Any) -> Any:
    return sw.order.aq_k_slack(**{"window": "1s", "coverage": 0.9, **settings})


def settled(order: Any) -> Any:
    """Return all state; what waits, however it lies in runs."""
    assert isinstance(order, Buffering)
    state = save(order)
    waiting = state["released"].pop("waiting")["runs"]
    times_ns = sorted(time for run in waiting for time in run.event_time_ns.tolist())
    return canonical([state["slack"], state["released"], times_ns])
