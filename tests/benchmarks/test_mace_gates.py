"""The trial of `mace-gates`, made small."""

from __future__ import annotations

import numpy as np

from benchmarks.mace.gates import (
    LAGS,
    draw_flow,
    predict,
    simulate,
    statistics_of,
)


def test_the_congestion_flow_waits_in_its_gate_as_is_predicted() -> None:
    drawn = draw_flow(3, seconds=8, slack="1s")
    measured = simulate(drawn)
    sample = simulate(draw_flow(3, seconds=8, slack="1s", share=0.5))
    assert sample.report.ledger.entered == measured.report.ledger.entered // 2
    made = predict(drawn, statistics_of(sample, drawn), is_known=True)
    worst_s = float(measured.latency_s.max())
    assert abs(made.latency.worst_s - worst_s) <= 0.05 * worst_s
    few = predict(drawn, statistics_of(sample, drawn), is_known=False)
    assert abs(few.latency.worst_s - worst_s) <= 0.08 * worst_s
    assert len(LAGS) == 3


def test_streams_of_a_seed_are_the_same_whatever_is_taken_of_them() -> None:
    whole, few = (draw_flow(5, seconds=5, slack=None, share=share) for share in (1.0, 0.1))
    assert whole.costs_ns == few.costs_ns
    assert whole.placement == few.placement
    for name, (at_s, event_s) in whole.times_s.items():
        assert np.array_equal(at_s, few.times_s[name][0])
        assert (at_s + 0.02 >= event_s - event_s[0]).all()  # nothing comes before it happens
