from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.measure.tuning import GateTuning, TuningReport
from slackwater.runtime.measure.tuning_series import MOST_SPANS, GateSpan, TuningSeries, TuningSpan


def span(second: int, latency_ns: int = 1) -> TuningSpan:
    gate = GateSpan(second, 2, 1, latency_ns, second, by=f"rule {second}")
    return TuningSpan(second, 1, latency_ns, int(latency_ns > 5), 10, {"gate": gate})


@given(
    st.lists(st.integers(1, 40), max_size=3 * MOST_SPANS).map(sorted),
    st.integers(1, MOST_SPANS * 9),
)
def test_however_long_a_run_its_series_is_bounded_and_loses_no_count(
    gaps: list[int], last: int
) -> None:
    seconds = sorted({*gaps, *range(0, last, 3)})
    series = TuningSeries()
    for second in seconds:
        series.add(span(second, latency_ns=second % 10))
    spans = series.spans
    assert len(spans) <= MOST_SPANS
    assert sum(one.seconds for one in spans) == len(seconds)
    assert sum(one.results for one in spans) == 10 * len(seconds)
    assert sum(one.over for one in spans) == sum(second % 10 > 5 for second in seconds)
    assert sum(one.gates["gate"].slack_ready for one in spans) == 2 * len(seconds)
    assert max(one.latency_ns for one in spans) == max(second % 10 for second in seconds)
    bins = [one.second // series.width_s for one in spans]
    assert bins == sorted(set(bins))
    assert TuningSeries.from_json(json.loads(json.dumps(series.to_json()))) == series


def test_neighbours_merge_into_sums_the_largest_times_and_the_last_slack() -> None:
    one = span(4, 9).then(span(5, 3))
    assert (one.second, one.seconds, one.latency_ns, one.over, one.results) == (4, 2, 9, 1, 20)
    assert one.gates == {"gate": GateSpan(5, 4, 2, 9, 5, by="rule 5")}


def test_a_series_of_other_hands_is_refused() -> None:
    series = TuningSeries()
    for second in range(3):
        series.add(span(second))
    plain = series.to_json()
    plain["gates"]["gate"]["late"].pop()
    with pytest.raises(ValueError, match="argument"):
        TuningSeries.from_json(plain)


def test_a_report_without_a_second_survives_json() -> None:
    report = TuningReport(10**9, "sltuner", gates=[GateTuning("gate")], status={"model": "none"})
    assert report.laxity_ns is None
    plain = json.loads(json.dumps(report.to_json()))
    assert TuningReport.from_json(plain).to_json() == plain
