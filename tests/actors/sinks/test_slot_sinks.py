"""The sinks of a slot in real time: they publish when due, and know a stop from a failure."""

from __future__ import annotations

import gc
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.engine.sinks.reader import Watcher
from slackwater.actors.sinks.outputs import collect_sink, jsonl_sink
from slackwater.actors.sinks.run_fingerprints import sink_runs
from slackwater.actors.slot.cutting import SavedPart
from slackwater.actors.slot.host import SlotHost
from slackwater.actors.wire.channel import ChannelKeys
from slackwater.ingest.memory import table
from slackwater.runtime.flow import Dataflow
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.flow_fingerprints import flow_fingerprints
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.sinks.output import Output, Sink
from slackwater.runtime.sources.spec import SourceReader
from tests.support.endless import SilentInput
from tests.support.hosts import release
from tests.support.own_outputs import Noting
from tests.support.sinks import seen
from tests.support.waiting import until

SOON_S = 20.0


@pytest.mark.parametrize("failure", [None, "the worker of slot 'node-2' died"])
def test_a_live_sink_publishes_though_its_source_is_silent_and_one_file_waits_for_the_end(
    tmp_path: Path, failure: str | None
) -> None:
    flow = Dataflow("falls-silent")
    data = SilentInput(table({"ts": [1, 2, 3], "n": [0, 1, 2]}))
    numbers = flow.source("numbers", data, event_time="ts", time_unit="ms")
    numbers.sink("live", jsonl_sink(tmp_path / "out", every="100ms"))
    numbers.sink("file", jsonl_sink(tmp_path / "one.jsonl"))
    plan = place(flow.name, plan_stages(flow.graph), ["node-1"])
    plan = replace(plan, fingerprints=flow_fingerprints(flow.steps))
    slot = SlotHost(slot_plan(plan, "node-1"), keys=ChannelKeys.generate())
    slot.bind(dict.fromkeys(plan.slots))
    start_ns = slot.connect({}, sink_runs(plan, "falls-silent-1", [slot.fingerprints()]))
    with Watcher(tmp_path / "out", [0, 1, 2]) as watcher:
        slot.start(start_ns)
        assert watcher.wait_for(3, within_s=SOON_S)
        until(lambda: slot.report().sinks[0].parts == 1, within_s=SOON_S, what="its report")
        slot.stop(failure)
        ended = slot.join()
        slot._waker.close()
        slot._context.term()
        gc.unfreeze()  # a slot freezes what there is in its process
    assert ended.state == "stopped"
    assert watcher.problems == []
    live, file = ended.sinks
    assert (live.rows, live.published, live.waiting, live.parts) == (3, 3, 0, 1)
    assert (file.rows, file.published, file.waiting) == (
        (3, 3, 0) if failure is None else (3, 0, 3)
    )
    assert seen(tmp_path / "one.jsonl") == ([0, 1, 2] if failure is None else [])
    told = json.loads((tmp_path / "out" / ".slackwater.json").read_text())
    assert told["run"]["state"] == ("stopped" if failure is None else "failed")
    assert (told["run"]["job"], told["run"]["error"]) == ("falls-silent-1", failure)
    assert "source 'numbers' reads table of 3 rows, then silence" in told["why_not"]
    assert not list(tmp_path.rglob("*.lock"))


class HangsAsItOpens(SilentInput):
    """An input of ours, and so read inline, whose file system does not answer for a while."""

    may_open = threading.Event()
    reads_inline = True

    def open(self) -> SourceReader:
        assert self.may_open.wait(SOON_S)
        return super().open()


def test_sinks_are_told_of_while_an_input_takes_its_time_to_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("slackwater.actors.slot.host.REPORT_S", 0.01)
    flow = Dataflow("opens-slowly")
    numbers = flow.source("numbers", HangsAsItOpens(table({"ts": [1]})), event_time="ts")
    numbers.sink("out", collect_sink())
    plan = place(flow.name, plan_stages(flow.graph), ["node-1"])
    slot = SlotHost(slot_plan(plan, "node-1"), keys=ChannelKeys.generate())
    slot.bind(dict.fromkeys(plan.slots))
    slot.start(slot.connect({}, {}))
    assert [(sink.name, sink.node, sink.rows) for sink in slot.report().sinks] == [
        ("out", "node-1", 0)
    ]
    HangsAsItOpens.may_open.set()
    slot.stop()
    assert slot.join().state == "stopped"
    release([slot])


def test_what_goes_wrong_with_a_sink_that_ends_for_another_slots_failure_is_told() -> None:
    flow = Dataflow("rolls-back")
    numbers = flow.source("numbers", SilentInput(table({"ts": [1]})), event_time="ts")
    numbers.sink("out", Noting(fails_in="abort"))
    plan = place(flow.name, plan_stages(flow.graph), ["node-1"])
    slot = SlotHost(slot_plan(plan, "node-1"), keys=ChannelKeys.generate())
    slot.bind(dict.fromkeys(plan.slots))
    slot.start(slot.connect({}, {}))
    until(lambda: slot.report().sinks[0].rows == 1, within_s=SOON_S, what="the row")
    slot.stop("slot 'node-2' has failed")
    ended = slot.join()
    release([slot])
    assert ended.state == "stopped"
    (told,) = ended.notes
    assert told.startswith("slot 'node-1', as its sinks ended: ")
    assert "ValueError: no abort today" in told


@pytest.mark.parametrize("recovers", [False, True])
def test_an_output_that_refuses_a_new_run_ends_the_job_at_once(recovers: bool) -> None:
    flow = Dataflow("refuses")
    numbers = flow.source("numbers", table({"ts": [1]}), event_time="ts")
    numbers.sink("out", Noting(fails_in="open", problem=ValueError("drop the table")))
    plan = place(flow.name, plan_stages(flow.graph), ["node-1"])
    slot = SlotHost(slot_plan(plan, "node-1"), keys=ChannelKeys.generate())
    slot.bind(dict.fromkeys(plan.slots))
    slot.start(slot.connect({}, {}, SavedPart("", recovers=recovers)))
    ended = slot.join()
    release([slot])
    assert ended.error_type == ("SinkError" if recovers else "OutputRefused")
    assert "drop the table" in (ended.error or "")


class HangsAsItCloses(Output, Sink):
    """A custom output and its sink, whose close does not return for a while."""

    def __init__(self) -> None:
        self.wrote, self.closes = threading.Event(), threading.Event()
        self.may_close = threading.Event()

    def describe(self) -> str:
        return "an output that hangs"

    def open(self, *_: object) -> HangsAsItCloses:
        return self

    def write(self, rows: object, first_ordinal: int) -> None:
        del rows, first_ordinal
        self.wrote.set()

    def close(self) -> None:
        self.closes.set()
        assert self.may_close.wait(SOON_S)


@pytest.mark.parametrize("ends", ["by itself", "stopped"])
def test_a_slot_whose_sink_hangs_as_it_ends_has_reported_its_rows(
    monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    monkeypatch.setattr("slackwater.actors.slot.host.REPORT_S", 0.01)
    flow, hangs, rows = Dataflow("ends-slowly"), HangsAsItCloses(), table({"ts": [1, 2, 3]})
    data = rows if ends == "by itself" else SilentInput(rows)
    numbers = flow.source("numbers", data, event_time="ts", time_unit="ms")
    numbers.sink("hangs", hangs)
    numbers.sink("out", collect_sink())
    plan = place(flow.name, plan_stages(flow.graph), ["node-1"])
    slot = SlotHost(slot_plan(plan, "node-1"), keys=ChannelKeys.generate())
    slot.bind(dict.fromkeys(plan.slots))
    slot.start(slot.connect({}, {}))
    if ends == "stopped":
        assert hangs.wrote.wait(SOON_S)
        slot.stop()
    assert hangs.closes.wait(SOON_S)
    told = slot.report()
    hangs.may_close.set()
    slot.join()
    release([slot])
    assert told.sinks[0].rows == 3
    assert [stage.name for stage in told.stages if stage.is_stuck] == ["hangs"]


class NoProgress(Output, Sink):
    """A custom output and its sink, whose progress raises once rows are written."""

    def __init__(self) -> None:
        self.rows = 0

    def describe(self) -> str:
        return "an output that cannot tell"

    def open(self, *_: object) -> NoProgress:
        return self

    def write(self, rows: object, first_ordinal: int) -> None:
        del rows
        self.rows = first_ordinal + 1

    def progress(self) -> None:
        if self.rows:
            raise ValueError("no progress today")


def test_a_slot_ends_though_a_sink_cannot_tell_its_progress() -> None:
    flow = Dataflow("cannot-tell")
    flow.source("numbers", table({"ts": [1]}), event_time="ts").sink("out", NoProgress())
    plan = place(flow.name, plan_stages(flow.graph), ["node-1"])
    slot = SlotHost(slot_plan(plan, "node-1"), keys=ChannelKeys.generate())
    slot.bind(dict.fromkeys(plan.slots))
    slot.start(slot.connect({}, {}))
    until(lambda: slot.report().state != "running", within_s=SOON_S, what="its end")
    ended = slot.join()
    release([slot])
    assert (ended.state, ended.sinks[0].rows) == ("done", 1)
    assert "NoProgress.progress raised ValueError: no progress today" in ended.sinks[0].notes[0]
