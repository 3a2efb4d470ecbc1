"""The load of `mace-*`, and the rows that its predictions count without running anything."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.mace.exact import exact
from benchmarks.mace.judge import worst_of
from benchmarks.mace.load import on_off_s
from benchmarks.mace.query import STAGES
from benchmarks.mace.trial import (
    Queries,
    first_statistics,
    predict,
    simulate,
    spread_statistics,
)
from slackwater.runtime.foresight.rates import OnOff

URLS = ("https://a.com/x?q=1", "http://b.org/y", "https://c.com/", "https://d.com/z#top", "e.com")
COUNT = 3_000


def queries(*, cost_ns: float = 4e5) -> Queries:
    at_s = on_off_s(np.random.default_rng(3), COUNT)
    table = pa.table(
        {
            "ts": np.rint(at_s * 1e9).astype(np.int64),
            "panelist": pa.array(["ann" if n % 3 else "bob" for n in range(COUNT)]),
            "url": pa.array([URLS[n % len(URLS)] for n in range(COUNT)]),
        }
    )
    stages = [f"1.{name}" for name in STAGES]
    return Queries(
        [at_s],
        [table],
        dict.fromkeys(stages, cost_ns),
        dict.fromkeys(stages, "node-1"),
        genders={"ann": "female", "bob": "male"},
    )


def test_high_periods_have_a_hundred_times_the_rate_and_a_quarter_of_the_time() -> None:
    at_s = on_off_s(np.random.default_rng(1), 400_000)
    assert at_s[0] == 0
    assert (np.diff(at_s) >= 0).all()
    rates = np.bincount(at_s.astype(np.int64))
    is_high = rates > 500
    assert is_high.mean() == pytest.approx(0.25, abs=0.06)
    assert np.median(rates[is_high]) == pytest.approx(1_000, rel=0.05)
    assert np.median(rates[~is_high]) == pytest.approx(10, rel=0.2)


def test_each_of_fourteen_operators_is_a_stage_and_gets_the_rows_that_are_counted() -> None:
    ran = simulate(queries())
    seen = {stage.name: stage for stage in ran.report.stages}
    assert list(seen) == [f"1.{name}" for name in STAGES]
    rows = [seen[f"1.{name}"].rows_in for name in STAGES[:10]]
    assert rows == [COUNT] * 5 + [COUNT * 3 // 5] * 2 + [COUNT * 2 // 5] * 3
    assert seen["1.out"].rows_in == pytest.approx(queries().duration_s / 0.05 + 200, abs=2)


def test_on_one_node_exact_loads_predict_the_worst_latency_and_so_does_a_sample() -> None:
    asked = queries()
    ran = simulate(asked)
    known = worst_of(ran, exact(asked, 0.1), "exact")
    assert known.measured_s > 5
    assert known.error("Mace") < 0.03
    for statistics in (first_statistics, spread_statistics):
        graph = statistics(asked, 0.08)
        assert worst_of(ran, predict(asked, graph, width_s=0.1), "sample").error("Mace") < 0.05


def test_arrivals_of_the_model_are_as_many_as_it_says() -> None:
    """`OnOff` draws what `mace-*` load nodes with, and what a prediction of it expects."""
    model = OnOff(257.0)
    at_s = model.arrivals_s(np.random.default_rng(5), 50_000)
    assert len(at_s) == 50_000
    assert (np.diff(at_s) >= 0).all()
    cells = int(at_s[-1])
    expected = model.series(np.random.default_rng(5), d=cells, width_s=1.0)
    first = expected[:5].sum()  # the same periods as long as nothing else has been drawn
    assert (at_s < 5).sum() == pytest.approx(first, rel=0.3, abs=30)
    assert model.high == 100 * model.low
