"""What the samples of an earlier job say: costs, selectivities, arrivals, lags."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.gates import SourceTimes
from slackwater.runtime.foresight.gates.recorded_times import times_recorded
from slackwater.runtime.foresight.observations import share_of
from slackwater.runtime.foresight.observed_graph import observed_graph
from slackwater.runtime.foresight.rates import RecordedRate, is_trace, series_of
from slackwater.runtime.foresight.recorded import arrivals_recorded, observed_job
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model.subject import Subject

MS, S = 1_000_000, 1_000_000_000
INPUTS: dict[str, tuple[str, ...]] = {"a": (), "b": (), "both": ("a", "b"), "out": ("both",)}


def second(
    stage: str, n: int, rows: int, *, slices: int = 1, busy_ns: int = 0, handed: int | None = None
) -> StageSample:
    """A second in which all that came was worked off."""
    return StageSample(
        subject=Subject(stage),
        second=n,
        rows=rows,
        came=rows,
        handed=rows if handed is None else handed,
        slices=slices,
        busy_ns=busy_ns,
        arrived=((10_000 + 10 * n, rows),) if stage in "ab" and rows else (),
    )


def job(fixed_ns: int = 50_000, row_ns: int = 2 * MS) -> list[StageSample]:
    """Return ten seconds: slices of one row at first, of many later; half of the rows stay."""
    found = []
    for n in range(10):
        rows, slices = 10 * (n + 1), 10
        found += [second("a", n, rows), second("b", n, rows)]
        busy_ns = 2 * slices * fixed_ns + 2 * rows * row_ns
        found.append(second("both", n, 2 * rows, slices=20, busy_ns=busy_ns, handed=rows))
        found.append(second("out", n, rows, busy_ns=1_000 * rows))
    return found


@given(st.integers(0, 200_000), st.integers(100_000, 20 * MS))
def test_what_a_slice_costs_is_told_from_what_its_rows_do(fixed_ns: int, row_ns: int) -> None:
    stages = {one.name: one for one in observed_job(job(fixed_ns, row_ns), INPUTS)}
    cost = stages["both"].cost()
    assert cost.row_s == pytest.approx(row_ns / S, rel=1e-3)
    assert cost.fixed_s == pytest.approx(fixed_ns / S, abs=1e-3 * row_ns / S)


@given(st.integers(1, 50), st.integers(1_000, 20 * MS))
def test_slices_of_one_length_are_a_part_of_what_their_rows_cost(each: int, row_ns: int) -> None:
    seen = [
        one
        if one.stage != "both"
        else replace(one, slices=one.rows, busy_ns=one.rows * (row_ns + each))
        for one in job()
    ]
    (both,) = (one for one in observed_job(seen, INPUTS) if one.name == "both")
    assert (both.cost().fixed_s, both.cost().row_s) == (0.0, pytest.approx((row_ns + each) / S))
    assert both.full_cost(0.002).row_s == both.cost().row_s


def test_a_row_costs_no_more_in_full_slices_than_it_did_on_average() -> None:
    """Rows of 4 ms, each in a slice of its own of 50 µs more: no full slice of 2 ms is cheaper."""
    seen = [
        one
        if one.stage != "both"
        else replace(one, slices=one.rows // (1 + one.second % 2), busy_ns=one.rows * 4_050_000)
        for one in job()
    ]
    (both,) = (one for one in observed_job(seen, INPUTS) if one.name == "both")
    assert both.full_cost(0.002).row_s == pytest.approx(0.00405)


def test_a_graph_has_the_selectivity_and_the_share_of_each_stage() -> None:
    stages = observed_job(job(), INPUTS)
    graph = observed_graph(stages, slice_s=0.002)
    shares = {one.name: share_of(one, stages) for one in stages}
    found = {one.name: one for one in graph.operators}
    assert graph.sources == ("arrivals of a", "arrivals of b")
    assert found["both"].inputs == ("a", "b")
    assert found["both"].selectivity == (0.5, 0.5)
    assert found["out"].selectivity == (1.0,)
    assert found["out"].cost_s == (pytest.approx(1e-6),)
    assert all(one.curve is None for one in graph.operators), "nothing is said of lengths"
    assert shares == {"a": 1.0, "b": 1.0, "both": 1.0, "out": 1.0}


def test_rows_that_the_end_of_the_job_cut_off_lower_no_selectivity() -> None:
    cut = [replace(one, came=one.rows + 7) if one.stage == "both" else one for one in job()]
    graph = observed_graph(observed_job(cut, INPUTS), slice_s=0.002)
    both = graph.operators[2]
    assert both.selectivity[0] == pytest.approx(0.5, rel=0.1)
    (stage,) = (one for one in observed_job(cut, INPUTS) if one.name == "both")
    assert stage.selectivity == 0.5


@pytest.mark.parametrize(
    ("seen", "claim"),
    [
        ([one for one in job() if one.stage != "both"], "it has no sample of both"),
        ([], "it has no sample of a, b, both, out"),
        (
            [replace(one, rows=0, came=0, handed=0) for one in job()],
            "no row was read at a, b in it",
        ),
        (
            [replace(one, came=0) if one.stage == "out" else one for one in job()],
            "no result has reached out in it",
        ),
    ],
)
def test_samples_that_do_not_show_a_run_say_what_is_missing(
    seen: list[StageSample], claim: str
) -> None:
    with pytest.raises(SettingError) as caught:
        observed_job(seen, INPUTS)
    assert claim in str(caught.value)


def test_samples_in_which_nothing_took_time_are_refused() -> None:
    idle = [replace(one, busy_ns=0) for one in job()]
    with pytest.raises(SettingError, match="nothing took any time"):
        observed_job(idle, INPUTS)


def test_arrivals_are_those_of_all_sources_from_the_first_event_on() -> None:
    seen = [one for one in job() if not (one.stage == "b" and one.second < 4)]
    found = arrivals_recorded(seen, ["a", "b"], interval_s=1.0)
    assert found["a"].length_s == found["b"].length_s == 10.0
    counts = found["b"].series(d=10, width_s=1.0)
    assert counts.tolist() == pytest.approx([0, 0, 0, 0, 50, 60, 70, 80, 90, 100])
    tenths = found["b"].series(d=100, width_s=0.1)
    assert tenths[40:50].tolist() == pytest.approx([50, *[0] * 9], abs=1e-9)
    assert found["a"].mean == pytest.approx(55)


@pytest.mark.parametrize("arrived", [(), ((3, -1),), ((0, 1), (2**62, 1))])
def test_arrivals_that_cannot_be_are_refused(arrived: tuple[tuple[int, int], ...]) -> None:
    seen = [StageSample(subject=Subject("a"), second=0, rows=1, arrived=arrived)]
    with pytest.raises(SettingError, match="what has arrived at the sources"):
        arrivals_recorded(seen, ["a"], interval_s=1.0)


@given(
    st.lists(st.integers(0, 1_000), min_size=1, max_size=20).filter(any),
    st.sampled_from([0.05, 0.1, 0.3, 1.0, 1.7]),
    st.integers(1, 400),
)
def test_a_record_gives_its_events_evenly_over_and_over(
    counts: list[int], width_s: float, d: int
) -> None:
    rate = RecordedRate(counts, interval_s=1.0)
    series = rate.series(d=d, width_s=width_s)
    assert (series >= -1e-9).all()
    turns, rest_s = divmod(d * width_s, len(counts))
    until = np.interp(rest_s, np.arange(len(counts) + 1), [0, *np.cumsum(counts)])
    assert series.sum() == pytest.approx(turns * sum(counts) + until, rel=1e-6, abs=1e-3)
    found = series_of({"a": rate}, {"a": 1.0}, d=d, width_s=width_s)
    assert np.array_equal(found["a"], series)
    assert is_trace(rate), "of what comes behind it nothing is known"


def lagging(
    stage: str = "a", *, lag_ms: int = 0, late_ms: int = 0, keeps_ms: int = 0, seconds: int = 10
) -> list[StageSample]:
    """A source of ten rows a second, so far behind the clock, that hands them over so late."""
    return [
        StageSample(
            subject=Subject(stage),
            second=n,
            rows=10,
            arrived=tuple((10 * n + part, 1) for part in range(10)),
            stimulus_ns=(n + 1) * S - late_ms * MS,
            last_event_ns=(n + 1) * S - (lag_ms + late_ms) * MS,
            promised_ns=(n + 1) * S - (lag_ms + late_ms + keeps_ms) * MS,
        )
        for n in range(seconds)
    ]


def times_of(*samples: StageSample, speed: float | None = 1) -> dict[str, SourceTimes]:
    names = sorted({one.stage for one in samples})
    arrived = arrivals_recorded(samples, names, interval_s=1.0)
    return times_recorded(samples, arrived, speeds=dict.fromkeys(names, speed))[0]


@given(st.integers(0, 5_000), st.integers(0, 900))
def test_lags_are_those_of_arrivals_however_late_a_source_was_asked(
    lag_ms: int, late_ms: int
) -> None:
    found = times_of(*lagging("a", lag_ms=lag_ms, late_ms=late_ms), *lagging("b"))
    behind = found["a"].lag_s - found["b"].lag_s
    assert behind == pytest.approx(np.full(100, lag_ms / 1_000), abs=1e-6)
    assert np.array_equal(found["a"].event_s, found["a"].promise_s), "it is in order"
    assert found["a"].stimulus_s == pytest.approx(np.arange(0.05, 10, 0.1))


def test_what_a_source_keeps_back_of_its_promise_is_known() -> None:
    times = times_of(*lagging(keeps_ms=700))["a"]
    assert times.event_s - times.promise_s == pytest.approx(np.full(100, 0.7))


def test_rows_that_had_waited_and_come_together_keep_their_own_times() -> None:
    """A second of silence, then twenty rows at once, which are of two seconds."""
    silent, at_once = lagging(seconds=5), lagging(seconds=5)
    silent[2] = replace(silent[2], rows=0, arrived=(), last_event_ns=2 * S, stimulus_ns=2 * S)
    at_once[2] = silent[2]
    at_once[3] = replace(at_once[3], rows=20, arrived=((30, 20),), stimulus_ns=3_050 * MS)
    times = times_of(*at_once)["a"]
    together = (times.stimulus_s >= 3.0) & (times.stimulus_s < 3.1)
    assert together.sum() == 20
    assert np.ptp(times.event_s[together]) == pytest.approx(2.0, abs=0.2)


def test_a_source_that_has_promised_nothing_has_no_promise() -> None:
    silent = [replace(one, promised_ns=-(2**63)) for one in lagging()]
    times = times_of(*silent, speed=None)["a"]
    assert np.isneginf(times.promise_s).all()
    assert times.pace == pytest.approx(1.0)
    later = times_of(*silent[:4], *lagging()[4:])["a"]
    assert np.isneginf(later.promise_s[:45]).all(), "until the end of the fifth second"
    assert np.isfinite(later.promise_s[50:]).all()


@pytest.mark.parametrize(("silent", "ends_s"), [(0, 4.95), (1, 4.95), (3, 6.95)])
def test_a_source_ends_with_its_last_row_or_as_long_after_it_as_it_was_silent(
    silent: int, ends_s: float
) -> None:
    rows = [one for one in lagging("a") if one.second < 5]
    last = rows[-1]
    after = [replace(last, second=n, rows=0, arrived=()) for n in range(5, 10)]
    seen = [replace(one, ended=one.second >= 4 + silent) for one in (*rows, *after)]
    times = times_of(*seen, *lagging("b"))
    assert times["a"].ends_s == pytest.approx(ends_s)
    assert times["b"].ends_s is None
    as_it_was = times["a"].ahead(np.repeat([1.0, 0.0], 50), 0.1, beyond=20, as_it_came=True)
    assert np.isposinf(as_it_was.promises.event_s[-1])
    assert as_it_was.promises.at_s[-1] == pytest.approx(ends_s)
    assert as_it_was.rows.stimulus_s.max() < 5, "nothing comes beyond its end"
    for other in (
        times["a"].ahead(np.ones(100), 0.1),
        times["a"].ahead(np.ones(200), 0.1, as_it_came=True),
        times["a"].ahead(np.ones(30), 0.1, as_it_came=True),
    ):
        assert np.isfinite(other.promises.event_s).all()


def test_event_time_of_a_source_that_is_read_as_fast_as_can_be_has_the_speed_that_was_seen() -> (
    None
):
    fast = [replace(one, last_event_ns=60 * one.stimulus_ns) for one in lagging()]
    assert times_of(*fast, speed=None)["a"].pace == pytest.approx(60.0)
