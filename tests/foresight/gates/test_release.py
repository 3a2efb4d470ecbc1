"""When a gate lets rows go, beside the gate itself, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.runtime.foresight.gates.release import delayed, delayed_rows, gate_times
from slackwater.runtime.foresight.gates.sources import SourceTimes
from slackwater.runtime.foresight.gates.streams import Series
from slackwater.runtime.merge import SlackGate
from slackwater.runtime.merge.writer import Writer
from slackwater.runtime.model import NS_PER_SECOND, ON_ARRIVAL, READY_ONLY, Batch, ReleaseRule
from tests.support.told import put

MS = 1_000_000
RULES = {
    "ready-only": READY_ONLY,
    "on arrival": ON_ARRIVAL,
    "slack": ReleaseRule.slack(300 * MS),
    "in full": ReleaseRule.in_full(300 * MS),
    "hold": ReleaseRule.hold(200 * MS),
    "slack and hold": ReleaseRule.slack(400 * MS, hold_ns=200 * MS),
}


def came(seed: int, rows: int = 60) -> list[tuple[int, int, int]]:
    """Return (arrival, writer, event time) of two writers, one of whom is late in waves; ns."""
    rng = np.random.default_rng(seed)
    times = rng.permutation(2 * rows) * 20 * MS + 1  # no two alike
    found = []
    for writer, own in enumerate((times[:rows], times[rows:])):
        event = np.sort(own)
        late = writer * rng.integers(0, 600) * (np.sin(event / 4e8) > 0) * MS
        at = np.maximum.accumulate(event + late) + np.arange(rows) * 7 + writer * 3
        found += [(int(a), writer, int(e)) for a, e in zip(at, event, strict=True)]
    return sorted(found)


def released_by_the_gate(rows: list[tuple[int, int, int]], rule: ReleaseRule) -> dict[int, int]:
    """Return {event time: when it left}, of the runtime's own gate."""
    gate = SlackGate([Writer(0, 0), Writer(0, 1)], rule=rule, keeps_waits=True)
    left: dict[int, int] = {}

    def read(now_ns: int) -> None:
        released = gate.read(now_ns=now_ns)
        for batch in () if released is None else (*released.ports, *released.late):
            for time in () if batch is None else batch.event_time_ns.tolist():
                left[time] = now_ns

    for at_ns, writer, time in rows:
        while (due_ns := gate.hold_ends_ns()) is not None and due_ns <= at_ns:
            read(due_ns)
        stamp = np.array([time])
        put(
            gate,
            writer,
            Batch(event_time_ns=stamp, stimulus_time_ns=np.array([at_ns]), columns={}),
            promise_ns=time,
            came_ns=at_ns,
        )
        read(at_ns)
    return left


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rule", RULES)
def test_rows_leave_when_the_gate_itself_lets_them_go(seed: int, rule: str) -> None:
    rows = came(seed)
    truth = released_by_the_gate(rows, RULES[rule])
    inputs = []
    for writer in (0, 1):
        own = np.array([(at, time) for at, of, time in rows if of == writer]) / NS_PER_SECOND
        inputs.append(SourceTimes.in_order(own[:, 0], own[:, 1]).series())
    found = gate_times(inputs, RULES[rule])
    checked = 0
    for series, released_s in zip(inputs, found.released_s, strict=True):
        for time_s, at_s in zip(series.rows.event_s, released_s, strict=True):
            left_ns = truth.get(round(time_s * NS_PER_SECOND))
            if left_ns is None:  # not by the last row
                assert at_s > rows[-1][0] / NS_PER_SECOND
                continue
            assert at_s == pytest.approx(left_ns / NS_PER_SECOND, abs=1e-6)
            checked += 1
    assert checked > 60


def test_what_lets_rows_go_is_what_comes_just_then_and_else_the_clock() -> None:
    """A prompt row waits for one of another source that was held up for 2 s before the gate."""
    prompt = SourceTimes.in_order(np.array([1.0, 6.0]), np.array([1.0, 6.0])).series()
    late = SourceTimes.in_order(np.array([3.0, 7.0]), np.array([1.5, 7.0])).series()
    late = Series(delayed_rows(late.rows, 2.0), delayed(late.promises, 2.0))
    ready = gate_times([prompt, late], READY_ONLY)
    assert ready.released_s[0].tolist() == [5.0, 9.0]
    assert ready.release_stimulus_s(ready.released_s[0]).tolist() == [3.0, 7.0]
    held = gate_times([prompt, late], ReleaseRule.hold(500 * MS))
    assert held.released_s[0].tolist() == [1.5, 6.5]
    assert held.release_stimulus_s(held.released_s[0]).tolist() == [1.5, 6.5]
