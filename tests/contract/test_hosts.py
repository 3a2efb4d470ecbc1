"""What every host of a flow promises: virtual time, and slots in real time.

A cluster promises it, too: `tests/system/test_host_contract.py`.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.actors.slot.host import SlotHost
from slackwater.actors.wire.channel import ChannelKeys
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.plan.slot_plan import SlotPlan
from slackwater.runtime.schedule import Egress, Slot, replay, replaying
from tests.support.endless import SilentInput
from tests.support.hosts import Host, Slots, Virtual, release
from tests.support.own_inputs import Feed
from tests.support.sinks import seen

ROWS = 300
APART = {"l": "node-1", "r": "node-2", "pairs": "node-2", "out": "node-1", "raw": "node-1"}


@pytest.fixture(params=[Virtual, Slots], ids=["virtual", "slots"])
def host(request: pytest.FixtureRequest) -> Host:
    made: Host = request.param()
    return made


def numbers(rows: int, *, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, 2_000, rows)),
            "key": rng.integers(0, 9, rows),
            "n": range(rows),
        }
    )


def pairs() -> sw.Dataflow:
    """A join of two sources, and the rows of one of them."""
    flow = sw.Dataflow("pairs")
    left, right = (
        flow.source(name, sw.table(numbers(ROWS, seed=at)), event_time="ts", time_unit="ms")
        for at, name in enumerate("lr")
    )
    left.sink("raw", sw.collect_sink())
    left.filter(sw.col("n") < 200).join(right, on="key", within="20ms", name="pairs").sink(
        "out", sw.collect_sink()
    )
    return flow


def test_rows_balance_come_out_in_one_order_and_no_latency_is_below_zero(host: Host) -> None:
    found = host.run(pairs(), placement=APART)
    assert (found.report.state, found.error) == ("done", None)
    assert imbalances(found.report) == []
    expected = sw.Simulation(nodes=1).submit(pairs())
    for sink in ("raw", "out"):
        assert found.tables[sink].equals(expected.result(sink)), f"{sink}: other rows, or order"
    for report in found.report.sinks:
        assert report.rows == len(found.tables[report.name]) > 0
        assert report.latency.min_ns >= 0


def ends_and_stays(folder: Path) -> sw.Dataflow:
    """Two sources and their sinks in one slot: one ends, the other has the same and no end."""
    flow = sw.Dataflow("two")
    data = sw.table(pa.table({"ts": [1, 2, 3], "n": [0, 1, 2]}))
    inputs: dict[str, Any] = {"ends": data, "stays": SilentInput(data)}
    for name, given in inputs.items():
        rows = flow.source(name, given, event_time="ts", time_unit="ms")
        rows.sink(f"{name}-out", sw.jsonl_sink(folder / name, rows=2))
    return flow


def state_of(folder: Path) -> str:
    try:
        return str(json.loads((folder / ".slackwater.json").read_text())["run"]["state"])
    except FileNotFoundError:
        return "none"


def test_a_sink_settles_at_its_own_end_of_stream_and_a_stop_publishes_the_rest(
    host: Host, tmp_path: Path
) -> None:
    ends, stays = tmp_path / "ends", tmp_path / "stays"

    def is_time() -> bool:
        return state_of(ends) == "done" and seen(stays) == [0, 1]

    found = host.run(ends_and_stays(tmp_path), stop_when=is_time, placement={"*": "node-1"})
    assert (found.report.state, found.error) == ("stopped", None)
    assert (state_of(ends), state_of(stays)) == ("done", "stopped")
    assert seen(ends) == seen(stays) == [0, 1, 2]
    assert not list(tmp_path.rglob("*.lock"))


def third_is_bad(rows: pa.RecordBatch) -> None:
    raise ValueError("no such stop")


def test_a_failure_is_named_with_what_its_slot_was_given_last_and_ended_sinks_stay_done(
    host: Host, tmp_path: Path
) -> None:
    flow = sw.Dataflow("fails")
    early = flow.source("early", sw.table({"ts": [1], "n": [0]}), event_time="ts", time_unit="ms")
    early.sink("first", sw.jsonl_sink(tmp_path / "first"))
    waits = flow.source(
        "late", sw.table({"ts": [0, 500]}), event_time="ts", time_unit="ms", speed=1.0
    )
    waits.filter(sw.col("ts") > 400).sink("calls", sw.callback_sink(third_is_bad))
    where = {"early": "node-1", "first": "node-1", "late": "node-1", "calls": "node-2"}
    found = host.run(flow, placement=where)
    assert found.report.state == "failed"
    assert found.error is not None
    assert found.error.startswith("sink 'calls': its callback raised ValueError: no such stop")
    assert "slot 'node-2': stage 'calls' began a slice of about" in found.report.slot_events[-1]
    assert any("1 rows came on channel 'late→calls'" in line for line in found.report.slot_events)
    assert (state_of(tmp_path / "first"), seen(tmp_path / "first")) == ("done", [0])


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


ODD_FAULTS = [KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), Unspeakable()]


def breaks(columns: dict[str, Any]) -> dict[str, Any]:
    raise KeyError("no such stop")


def raises(fault: BaseException, rows: Any) -> Any:
    raise fault


@pytest.mark.parametrize("fault", ODD_FAULTS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("where", ["batches", "rows", "callback", "at_end", "source"])
def test_whatever_users_code_raises_is_named_with_its_step_the_rule_and_its_line(
    where: str, fault: BaseException, host: Host
) -> None:
    flow = sw.Dataflow("odd")
    hits, schema = partial(raises, fault), {"t": "int64"}
    feed = Feed(partial(raises, fault, None)) if where == "source" else sw.table({"t": [1, 2]})
    rows = flow.source("odd", feed, event_time="t", time_unit="ms")
    if where == "batches":
        rows = rows.map_batches(hits, schema=schema, name="odd-step")
    if where == "rows":
        rows = rows.map_rows(hits, schema=schema, name="odd-step")
    rows.sink(
        "odd-out",
        sw.callback_sink(
            hits if where == "callback" else lambda _: None,
            at_end=partial(hits, None) if where == "at_end" else None,
        ),
    )
    found = host.run(flow, placement={"odd": "node-1", "odd-out": "node-2"})
    assert (found.report.state, found.report.error) == ("failed", found.error)
    assert found.error is not None
    step = {"source": "source 'odd'", "batches": "step 'odd-step'", "rows": "step 'odd-step'"}
    assert found.error.startswith(step.get(where, "sink 'odd-out'"))
    assert f"raised {type(fault).__name__}" in found.error
    assert "in raises\n    raise fault" in found.error
    if isinstance(fault, Exception):
        assert "whose text cannot be had (its __str__ raised RuntimeError)" in found.error
    elif where != "source":
        assert "to end the job, raise an error that is an Exception" in found.error
    assert found.report.ledger.is_balanced


@pytest.mark.parametrize("where", ["source", "merge", "branch", "dedupe"])
def test_each_event_of_a_job_that_a_function_ends_is_in_its_ledger(where: str, host: Host) -> None:
    table = numbers(ROWS)
    schema = {field.name: str(field.type) for field in table.schema}
    flow = sw.Dataflow("breaks")
    rows = flow.source("l", sw.table(table), event_time="ts", time_unit="ms")
    rows = rows.filter(sw.col("n") < 200)
    match where:
        case "merge":
            rows = rows.merge(name="in-order")
        case "branch":
            rows.sink("raw", sw.collect_sink())
        case "dedupe":
            rows = rows.dedupe("key", within="20ms")
    rows.map_batches(breaks, schema=schema, name="bad").sink("out", sw.collect_sink())
    found = host.run(flow, placement={"l": "node-1", "out": "node-2"})
    assert found.error is not None
    assert found.error.startswith("step 'bad': its function raised KeyError")
    assert found.report.ledger.entered > 0
    assert found.report.ledger.is_balanced, f"{found.report.ledger}"


def test_what_a_slot_was_given_in_real_time_replays_to_the_same_results() -> None:
    found = Slots(Limits(log=10**6)).run(pairs(), placement=APART)
    assert found.plan is not None
    left = dict.fromkeys(found.tables, 0)
    for name, log in found.logs.items():
        slot = Slot(name, replaying(found.plan.stages_of(name), log), start_ns=0)
        for done in replay(slot, log):
            for action in [] if done is None else done.actions:
                if isinstance(action, Egress) and action.batch is not None:
                    left[action.stage] += len(action.batch)
        assert slot.is_finished
    assert left == {sink: len(table) for sink, table in found.tables.items()}
    host = SlotHost(SlotPlan(name="a", node="a", stages=()), keys=ChannelKeys.generate())
    with pytest.raises(SettingError, match=r"slot 'a' keeps no log; submit with Limits\(log=…\)"):
        host.log()
    release([host])
