"""Trials of a gate: what other settings would have let go, beside counting row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from slackwater.runtime.measure import trials
from slackwater.runtime.measure.trials import GateTrials, Trial
from slackwater.runtime.model import END_NS, START_NS
from tests.support.rules import rule

MS = 1_000_000
RULES = (
    Trial("short", rule(None, hold_ns=40 * MS)),
    Trial("long", rule(None, hold_ns=200 * MS)),
    Trial("slack", rule(100 * MS)),
    Trial("both", rule(150 * MS, hold_ns=60 * MS)),
    Trial("nothing", rule(None)),
)


class TwoWriters:
    """A gate with a writer on time and one that is late by what varies; a row each 10 ms."""

    def __init__(self, seed: int, slices: int = 300) -> None:
        rng = np.random.default_rng(seed)
        lag_ms = 120 + 100 * np.sin(np.arange(slices) / rng.uniform(10, 40))
        late_ms = np.maximum.accumulate(10 * np.arange(slices) + lag_ms).astype(int)
        self.rows = [(10 * n * MS, 10 * n * MS, 0) for n in range(slices)]  # (came, time, writer)
        self.rows += [
            (int(came) * MS + MS // 2, (10 * n + 5) * MS, 1)
            for n, came in zip(range(slices), late_ms, strict=True)
        ]
        self.rows.sort()
        self.end_ns = max(came for came, _, _ in self.rows) + 1

    def told(self, one: GateTrials) -> None:
        promises = [START_NS, START_NS]
        newest = START_NS
        for came_ns, time_ns, writer in self.rows:
            newest, promises[writer] = max(newest, time_ns), time_ns
            one.came(writer, np.array([time_ns]), time_ns, came_ns)
            least = min(promises)
            one.read(came_ns, newest, (least, promises.index(least) + 1), writers=2)
        one.read(self.end_ns, newest, (END_NS, 2), writers=2)

    def counted(self, trial: Trial) -> int:
        """Row by row: it leaves unready if slack or hold have passed it before both promises."""
        on_time = [(came, time) for came, time, writer in self.rows if writer == 0]
        late = [(came, time) for came, time, writer in self.rows if writer == 1]
        lost = 0
        for came_ns, time_ns in on_time:  # the late writer's rows are ready as they come
            ready_ns = min((c for c, t in late if t > time_ns), default=END_NS)
            if ready_ns == END_NS:
                continue
            by_hold = (hold_ns := trial.rule.hold_ns) is not None and came_ns + hold_ns < ready_ns
            slack_ns = trial.rule.lead_ns
            by_slack = slack_ns is not None and any(
                t - time_ns > slack_ns and c < ready_ns for c, t in on_time
            )
            lost += by_hold or by_slack
        return lost


def rows_of(one: GateTrials, seconds: Sequence[int]) -> dict[str, int]:
    lost: dict[str, int] = {}
    for end_ns in seconds:
        for name, rows, _ in one.close(end_ns):
            lost[name] = lost.get(name, 0) + rows
    return lost


@pytest.mark.parametrize("seed", range(4))
def test_a_trial_loses_as_many_rows_as_counting_one_by_one(seed: int) -> None:
    flow = TwoWriters(seed)
    one = GateTrials()
    one.set(RULES)
    flow.told(one)
    lost = rows_of(one, [flow.end_ns])
    assert lost == {trial.name: flow.counted(trial) for trial in RULES}
    assert lost["short"] > lost["long"] > 0 == lost["nothing"]


def test_a_trial_waits_as_long_as_its_hold_at_most_and_else_until_rows_are_ready() -> None:
    flow = TwoWriters(1)
    one = GateTrials()
    one.set(RULES)
    flow.told(one)
    waits = {name: wait_ns for name, _, wait_ns in one.close(flow.end_ns)}
    assert waits["short"] == 40 * MS
    assert 200 * MS < waits["nothing"] < 240 * MS
    assert one.close(flow.end_ns + 1)[0].wait_ns == 0, "of a second, once"


def test_a_trial_that_is_changed_goes_on_from_where_it_was() -> None:
    one = GateTrials()
    one.set([Trial("a", rule(None, hold_ns=100 * MS))])
    one.came(0, np.array([0]), 0, 0)
    one.read(0, 0, (START_NS, 1), writers=2)
    one.set([Trial("a", rule(None, hold_ns=10 * MS))])
    one.read(50 * MS, 0, (START_NS, 1), writers=2)
    one.came(1, np.array([5]), 5, 60 * MS)
    one.read(60 * MS, 5, (5, 2), writers=2)
    ((_, rows, wait_ns),) = one.close(70 * MS)
    assert (rows, wait_ns) == (1, 50 * MS)


def test_rows_that_all_trials_have_let_go_are_counted_without_waiting_for_a_silent_writer() -> None:
    one = GateTrials()
    one.set([Trial("a", rule(None, hold_ns=10 * MS)), Trial("b", rule(None, hold_ns=20 * MS))])
    for n in range(100):
        one.came(0, np.array([n * MS]), n * MS, n * MS)
        one.read(n * MS, n * MS, (START_NS, 1), writers=2)
    lost = {name: rows for name, rows, _ in one.close(200 * MS)}
    assert lost == {"a": 100, "b": 100}
    assert len(one._rows_ns) == 0


def test_of_very_many_rows_a_sample_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "MOST_ROWS", 1_000)
    one = GateTrials()
    one.set([Trial("a", rule(None, hold_ns=10 * MS)), Trial("b", rule(None, hold_ns=10**15))])
    times_ns = np.arange(50_000) * 1_000
    one.came(0, times_ns, int(times_ns[-1]), 0)
    one.read(0, int(times_ns[-1]), (START_NS, 1), writers=2)
    one.close(MS)
    assert len(one._rows_ns) <= 1_000
    one.read(20 * MS, int(times_ns[-1]), (END_NS, 2), writers=2)
    lost = {name: rows for name, rows, _ in one.close(30 * MS)}
    assert lost["b"] == 0
    assert lost["a"] == pytest.approx(50_000, rel=0.01)
