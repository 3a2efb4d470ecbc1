"""A chain of K-slack buffers does what one buffer of the sum does, and holds no more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.model import START_NS, ReleaseRule, batch_of
from slackwater.runtime.operators.merge.merge import MergeStep
from tests.support.flows import MS, simulated
from tests.support.told import put

SLACKS = ("50ms", "100ms", "300ms")


def shuffled(seed: int, *, most_ms: int, step_ms: int = 1) -> pa.Table:
    """Return 3,000 rows, one each `step_ms`, each late by up to `most_ms`."""
    rng = np.random.default_rng(seed)
    sent = np.arange(1_000) * step_ms
    came = sent + np.where(rng.random(1_000) < 0.3, rng.integers(0, most_ms, 1_000), 0)
    order = np.argsort(came, kind="stable")
    return pa.table({"t": sent[order] * MS, "came": came[order] * MS, "n": order})


def chained(table: pa.Table, *chains: tuple[str, ...]) -> dict[str, list[int]]:
    """Return {slack and number of its chain: times as they left}."""
    flow = sw.Dataflow("chained")
    events = flow.source(
        "events",
        sw.table(table),
        event_time="t",
        arrival="came",
        speed=1,
        out_of_order="late",
        disorder="2s",
    )
    for number, slacks in enumerate(chains):
        for slack, stream in zip(slacks, events.k_slack_chain(*slacks), strict=True):
            stream.sink(f"{slack} of {number}", sw.collect_sink())
    job, report = simulated(flow, nodes=1)
    assert not imbalances(report)
    names = [f"{slack} of {number}" for number, slacks in enumerate(chains) for slack in slacks]
    return {name: job.result(name)["t"].to_pylist() for name in names}


def late(times: list[int]) -> int:
    """Return how many rows leave behind a newer one."""
    return int((np.array(times) < np.maximum.accumulate(times)).sum())


def test_a_chain_in_a_flow_gives_what_one_buffer_of_the_sum_gives() -> None:
    left = chained(shuffled(1, most_ms=90), SLACKS, *((one,) for one in SLACKS))
    for number, slack in enumerate(SLACKS[1:], start=2):
        assert left[f"{slack} of 0"] == left[f"{slack} of {number}"] == sorted(left["100ms of 0"])
    # How late rows lie among others depends on how many rows a slice takes.
    counts = [late(left[f"50ms of {number}"]) for number in (0, 1)]
    assert min(counts) > 100
    assert abs(counts[0] - counts[1]) < 0.05 * min(counts)


@given(
    st.lists(st.integers(0, 12), min_size=30, max_size=60),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
)
def test_row_by_row_a_chain_is_a_buffer_of_the_sum_and_holds_as_much(
    delays: list[int], steps: list[int]
) -> None:
    """A row each tick in order, and one each tick that comes late."""
    came = sorted([*((t, t) for t in range(60)), *((t + d, t) for t, d in enumerate(delays))])
    rows = [event for _, event in came]
    chain, alone = Gates(steps), Gates([sum(steps)])
    for row in rows:
        assert chain.give(row) == alone.give(row)
        assert chain.held == alone.held
    apart = [Gates([sum(steps[: number + 1])]) for number in range(len(steps))]
    for row in rows:
        for gates in apart:
            gates.give(row)
    assert max(one.held for one in apart) == chain.held
    assert sum(one.held for one in apart) >= chain.held + sum(one.held for one in apart[:-1])


class Gates:
    """Gates as a chain has them, each read as soon as a row has come."""

    def __init__(self, steps: Sequence[int]) -> None:
        flow = sw.Dataflow("gates")
        stream = flow.source("s", sw.table({"t": [1]}), event_time="t")
        made = stream.k_slack_chain(*(f"{sum(steps[: n + 1])}ns" for n in range(len(steps))))
        self.gates = []
        for one in made:
            step = flow.steps[one.name]
            assert isinstance(step, MergeStep)
            assert isinstance(step.release, ReleaseRule)
            self.gates.append(SlackGate([Writer(0, 0, is_mixed=True)], rule=step.release))

    def give(self, row: int) -> list[int]:
        """Insert a row; return what leaves the last gate."""
        rows = [row]
        for gate in self.gates:
            left: list[int] = []
            for one in rows:
                put(gate, 0, batch_of([one]), promise_ns=START_NS)
                released = gate.read()
                for batch in () if released is None else (released.late[0], released.ports[0]):
                    left += [] if batch is None else batch.event_time_ns.tolist()
            rows = left
        return rows

    @property
    def held(self) -> int:
        """Rows in all of them."""
        return sum(gate.rows_held for gate in self.gates)


def test_a_chain_waits_in_full_and_says_so() -> None:
    flow = sw.Dataflow("told")
    events = flow.source("events", sw.table({"t": [1]}), event_time="t")
    for number, stream in enumerate(events.k_slack_chain("1s", "3s")):
        stream.sink(f"out {number}", sw.collect_sink())
    said = flow.explain()
    assert "slack 1000 ms in full" in said
    assert "slack 2.00 s in full" in said


def test_a_flow_with_a_chain_is_not_called_one_sequence() -> None:
    flow = sw.Dataflow("told")
    events = flow.source("events", sw.table({"t": [1]}), event_time="t")
    fast, _ = events.k_slack_chain("1s", "3s")
    fast.sink("out", sw.collect_sink())
    said = flow.explain()
    assert "note: results may differ from run to run, for the gate of 'in-order-1' has a" in said
    assert "how rows are read" in said
    with pytest.raises(FlowError, match="how rows are read"):
        fast.sink("resumed", sw.parquet_sink("out", resume=True))


def test_slacks_that_make_no_chain_are_refused() -> None:
    events = sw.Dataflow("wrong").source("events", sw.table({"t": [1]}), event_time="t")
    for slacks, said in (
        ((), "slacks are missing"),
        (("2s", "1s"), "'2s', '1s'; give at least one, each longer than the one before"),
        (("1s", "1s"), "each longer"),
        (("0s",), "slack 1='0s' must be more than zero"),
    ):
        with pytest.raises(SettingError, match=said):
            events.k_slack_chain(*slacks)
