"""Random flows recover from random faults; `recovery-simulated` runs 5,000 of them."""

from __future__ import annotations

import sys

from benchmarks.engine.recovery_simulated import MOMENTS, RUNS, Tally

SEED, FLOWS = 2, 50


def test_each_row_is_decided_once_whatever_fails_and_when() -> None:
    tally = Tally()
    for number in range(FLOWS):
        tally.add(SEED, number, most_rows=30)
    sys.stdout.write(f"seed {SEED}: faults {dict(tally.strikes)}; {dict(tally.counts)}\n")
    assert not tally.failures, f"seed {SEED}"
    assert sum(tally.runs.values()) == FLOWS * RUNS
    assert all(tally.strikes[moment] for moment in MOMENTS), dict(tally.strikes)
    assert tally.counts["rows that came again"] > 0
