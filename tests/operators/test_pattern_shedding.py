"""Shedding in the operator: what windows lose, what is counted, what latency becomes."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.espice.rivals import baseline_shedding, random_shedding
from slackwater.runtime.model import END_NS, READY_ONLY, Batch, GateRead
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.patterns.normal import Asked, Normal, Place, Sequence
from slackwater.runtime.patterns.operator.step import PatternStep
from slackwater.runtime.patterns.scopes import CountWindows, OpenedWindows, TimeWindows, WindowRule
from slackwater.runtime.shedding.overload import Load
from slackwater.runtime.shedding.settings import Drops
from slackwater.runtime.shedding.shedder import Amount
from slackwater.runtime.shedding.wrapper.window_shedding import Kept, WindowShedding
from slackwater.runtime.shedding.wrapper.words import Espice, espice
from tests.patterns.spec import Event, Spec
from tests.patterns.worlds import no_condition
from tests.support.shedders import shed_machine
from tests.support.told import gate_read

TYPES = 6
SEQUENCE = Normal(
    tuple(Asked(f"e{kind}", types=(kind,)) for kind in range(TYPES)),
    (Sequence(tuple(Place((kind,)) for kind in range(3))),),
)


def step_of(shed: Espice, scope: WindowRule, **settings: Any) -> PatternStep:
    return PatternStep(
        name="found",
        inputs=("rows",),
        schema=pa.schema({"window_start": pa.timestamp("ns"), "events": pa.string()}),
        keys=(),
        pattern=settings.pop("pattern", SEQUENCE),
        scope=scope,
        release=READY_ONLY,
        type_column="type",
        id_column="id",
        shed=shed,
        **settings,
    )


def read_of(times: Any, types: Any, first: int, last_ns: int | None = None) -> GateRead:
    times = np.asarray(times, dtype=np.int64)
    columns: Any = {
        "type": np.asarray(types, dtype=np.int64),
        "id": np.arange(first, first + len(times)),
    }
    at_ns = int(times[-1]) if last_ns is None else last_ns
    return gate_read(
        [Batch(event_time_ns=times, stimulus_time_ns=times, columns=columns)],
        [None],
        at_ns,
        0,
        at_ns,
    )


def leaves(batches: list[Batch | None]) -> list[tuple[int, int, tuple[int, ...]]]:
    found = []
    for batch in batches:
        if batch is None:
            continue
        starts = np.asarray(batch.columns["window_start"]).astype(np.int64).tolist()
        events = [json.loads(text) for text in batch.columns["events"].tolist()]
        each = zip(batch.event_time_ns.tolist(), starts, events, strict=True)
        found += [(time, start, tuple(one for _, one in some)) for time, start, some in each]
    return found


@pytest.mark.parametrize(
    "scope",
    [
        OpenedWindows(0, span_ns=12),
        OpenedWindows(0, events=9),
        CountWindows(9, 4),
        TimeWindows(12, 5),
    ],
    ids=str,
)
@pytest.mark.parametrize("consumes", [True, False])
@pytest.mark.parametrize("drops", ["pairs", "events"])
@pytest.mark.parametrize("seed", range(4))
def test_what_leaves_is_what_windows_without_the_dropped_events_give(
    scope: WindowRule, consumes: bool, drops: Drops, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read by read, put away between reads; what was dropped is told by the shedder."""
    chance = Random(seed)  # noqa: S311
    step = step_of(random_shedding("1h", seed=seed, drops=drops), scope, consumes=consumes)
    told: list[Kept] = []
    dropped = WindowShedding.dropped

    def listened(self: WindowShedding, *rows: Any) -> Kept:
        told.append(dropped(self, *rows))
        return told[-1]

    monkeypatch.setattr(WindowShedding, "dropped", listened)
    machine = shed_machine(step, most_kept_rows=10_000)
    events: list[Event] = []
    batches: list[Batch | None] = []
    lost: set[tuple[int, int]] = set()
    shed = time_ns = 0
    for _ in range(12):
        times, types = [], []
        for _ in range(chance.randrange(1, 9)):
            time_ns += chance.randrange(3)
            times.append(time_ns)
            types.append(chance.randrange(TYPES))
        first = len(events)
        for number, (at_ns, kind) in enumerate(zip(times, types, strict=True), first + 1):
            events.append(Event(number, at_ns, (kind,)))
        batches.append(machine.work(read_of(times, types, first + 1), now_ns=0).rows)
        shed += int(told[-1].is_shed.sum())
        for row in range(len(times)):
            keys = range(-10, 60) if told[-1].is_shed[row] else told[-1].lost.get(row, ())
            lost |= {(key, first + row + 1) for key in keys}
        state = deepcopy(save(machine))
        machine = shed_machine(step, most_kept_rows=10_000)
        restore(machine, state)
        machine._shedding._shedding.shedder.aim(Amount(0.4))
    counts = machine.counts().get("shedding")
    assert counts is not None
    batches.append(machine.work(gate_read([None], [None], END_NS, 0, END_NS), now_ns=0).rows)
    assert counts.shed == machine.counts()["shed"] == shed
    assert 0 < counts.dropped < counts.pairs
    spec = Spec(SEQUENCE, scope, "first", consumes, None, "any", no_condition, lost=frozenset(lost))
    expected = [
        (time, start, tuple(part[0] for part in choice))
        for time, start, _, choice in spec.run(events)
    ]
    assert sorted(leaves(batches)) == sorted(expected), f"seed {seed}"


# -- in virtual time ------------------------------------------------------------------------


SLICE = 500
COST_NS = 20_000
BOUND_NS = 100_000_000


def cycles(events: int, seed: int = 3) -> Any:
    """Every 50 events the six of a sequence, one after the other; others are of forty types."""
    at = np.arange(events) % 50
    return np.where(at < TYPES, at, np.random.default_rng(seed).integers(0, 40, events))


def overloaded(shed: Espice, over: float, *, events: int = 40_000) -> tuple[int, int, Any]:
    """Return matches, the longest latency, and the counts; at `over` times what can be done."""
    six = Normal(SEQUENCE.asked, (Sequence(tuple(Place((kind,)) for kind in range(TYPES))),))
    step = step_of(shed, OpenedWindows(0, events=50), pattern=six, most=1)
    machine = shed_machine(step, most_kept_rows=10**9)
    types, times = cycles(events), np.arange(events) * int(COST_NS / over)
    now_ns = begin = matches = longest_ns = idle_ns = 0
    before = (0, 0)
    while begin < events:
        due_ns = int(times[begin + min(SLICE // 10, events - begin - 1)])
        idle_ns += max(due_ns - now_ns, 0)
        now_ns = max(now_ns, due_ns)
        end = min(int(np.searchsorted(times, now_ns, "right")), begin + SLICE)
        batch = machine.work(read_of(times[begin:end], types[begin:end], begin), now_ns).rows
        counts = machine.counts().get("shedding")
        assert counts is not None
        pairs, dropped = counts.pairs - before[0], counts.dropped - before[1]
        before = (counts.pairs, counts.dropped)
        took_ns = round((end - begin) * COST_NS * (1 - dropped / max(pairs, 1)))
        machine.charge(took_ns, idle_ns)
        now_ns += took_ns
        longest_ns = max(longest_ns, now_ns - int(times[begin]))
        matches += 0 if batch is None else len(batch)
        begin = end
    return matches, longest_ns, machine.counts().get("shedding")


def test_nothing_is_shed_below_capacity() -> None:
    _, _, counts = overloaded(espice("100ms", drops="pairs"), 0.8)
    assert (counts.shed, counts.dropped, counts.starts, counts.lost_share) == (0, 0, 0, None)


@cache
def calm_matches() -> int:
    """Return the number of matches below capacity."""
    return overloaded(espice("100ms", drops="pairs"), 0.8)[0]


@pytest.mark.parametrize("over", [1.2, 1.4, 2.0])
def test_under_overload_the_bound_is_kept_and_espice_loses_few_matches(over: float) -> None:
    matches, longest_ns, counts = overloaded(espice("100ms", drops="pairs"), over)
    assert longest_ns <= BOUND_NS
    assert matches >= 0.98 * calm_matches()
    assert counts.is_trained
    assert counts.shed > 0
    assert counts.judged_lost_share < 0.05
    by_chance, longest_ns, counts = overloaded(random_shedding("100ms", drops="pairs"), over)
    assert longest_ns <= BOUND_NS
    assert by_chance < 0.8 * calm_matches()
    # What it says to have lost is what it lost, over the time that it shed.
    of_shed = counts.spells[0][1] - counts.spells[0][0]
    share = of_shed / (40_000 * COST_NS / over)
    told = counts.judged_lost_share
    assert 1 - by_chance / calm_matches() == pytest.approx(
        share * told, abs=0.1 + counts.judged_error
    )


def test_no_window_is_kept_whole_whose_work_alone_breaks_the_bound() -> None:
    """A window of 50 events takes 1 ms, of which a bound of 4 ms leaves 0.8."""
    shed = espice("4ms", drops="pairs", explore=0.5, f=0.8)
    step = step_of(shed, OpenedWindows(0, events=50))
    shedding = shed_machine(step, most_kept_rows=10**9)._shedding._shedding
    shedding.detector.observe(Load(0, 100, 100, 100 * COST_NS, pairs=100), size=50)
    numbers = range(200)
    assert any(shedding.keeps_whole(number, 39) for number in numbers)
    assert not any(shedding.keeps_whole(number, 41) for number in numbers)


def test_the_baseline_drops_types_that_the_pattern_does_not_have_first() -> None:
    calm, _, _ = overloaded(baseline_shedding("100ms", drops="pairs"), 0.8)
    matches, longest_ns, counts = overloaded(baseline_shedding("100ms", drops="pairs"), 1.4)
    assert longest_ns <= BOUND_NS
    assert matches == calm
    assert counts.dropped > 0


def test_overload_that_shedding_cannot_cure_says_so() -> None:
    """It takes as long whether events are dropped or not."""
    step = step_of(espice("100ms", drops="pairs"), OpenedWindows(0, events=50))
    machine = shed_machine(step, most_kept_rows=10**9)
    types, times = cycles(60_000), np.arange(60_000) * (COST_NS // 2)
    now_ns = 0
    for begin in range(0, 60_000, SLICE):
        now_ns = max(now_ns, int(times[begin]))
        machine.work(
            read_of(times[begin : begin + SLICE], types[begin : begin + SLICE], begin), now_ns
        )
        machine.charge(SLICE * COST_NS, 0)
        now_ns += SLICE * COST_NS
    counts = machine.counts().get("shedding")
    assert counts is not None
    assert counts.uncured > 0
    assert "a replica more, or a faster step in front, is needed" in counts.reason
