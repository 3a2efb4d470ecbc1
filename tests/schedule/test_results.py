"""What is done at the sinks of a slot, and when: egress, time and the end go in, actions out."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from slackwater.runtime.errors import SinkError
from slackwater.runtime.model import Batch
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.schedule import Egress, Rest, Slot, SlotResults, Written, carry_out, rest_of
from slackwater.runtime.schedule.results import Abort, Close, Publish, Write


def batch(*stimuli: int) -> Batch:
    at = np.array(stimuli, dtype=np.int64)
    return Batch(event_time_ns=at, stimulus_time_ns=at, columns={"n": at})


class Sinks:
    """Sinks of a host that do as they are told, and remember it; some refuse."""

    def __init__(self, **answers: Any) -> None:
        self.done: list[str] = []
        self.answers = answers

    def write(self, sink: str, batch: Batch) -> Written:
        self.done.append(f"write {sink} {len(batch)}")
        return self.answers.get("write", Written())

    def publish(self, sink: str) -> int | None:
        self.done.append(f"publish {sink}")
        return self.answers.get("publish")

    def close(self, sink: str, state: str) -> None:
        self.done.append(f"close {sink} {state}")
        if sink in self.answers.get("full", ()):
            raise SinkError("the disk is full")

    def abort(self, sink: str, error: str) -> None:
        self.done.append(f"abort {sink} {error}")
        if sink in self.answers.get("exits", ()):
            sys.exit(3)


def test_a_sink_settles_at_its_own_end_of_stream_and_is_left_alone_behind_it() -> None:
    results, sinks = SlotResults(["one", "other"]), Sinks()
    last = results.leaves(Egress("one", batch(1), is_end=True))
    assert [type(action) for action in last] == [Write, Close]
    carry_out(last, results, sinks, lambda: 5)
    assert results.open == ("other",)
    assert results.ends("stopped") == [Close("other", "stopped")]
    assert results.ends("failed", "a worker died") == [Abort("other", "a worker died")]
    carry_out(results.ends("failed", "a worker died"), results, sinks, lambda: 5)
    assert sinks.done == ["write one 1", "close one done", "abort other a worker died"]
    assert results.ends("done") == []


def test_latency_ends_when_a_write_has_returned_and_rows_of_an_earlier_run_have_none() -> None:
    results, now = SlotResults(["out"]), 107
    sinks = Sinks(write=Written(skipped=1))
    carry_out(results.leaves(Egress("out", batch(1, 100), False)), results, sinks, lambda: now)
    (report,) = results.reports()
    assert (report.rows, report.latency.min_ns, report.latency.max_ns) == (1, 7, 7)


def test_what_waits_is_published_when_it_is_due_and_a_slot_sleeps_no_longer_than_that() -> None:
    results, sinks = SlotResults(["out"]), Sinks(write=Written(due_ns=50), publish=90)
    assert (results.due_ns, results.due(10**9)) == (None, [])
    carry_out(results.leaves(Egress("out", batch(1), False)), results, sinks, lambda: 1)
    assert (results.due_ns, results.due(49)) == (50, [])
    slot = Slot("a", [], start_ns=0)
    assert rest_of(slot, results, 7_000, sinks_ns=lambda: 20) == Rest(7_030, is_guess=False)
    assert rest_of(slot, results, 7_000, sinks_ns=lambda: 99) == Rest(7_000, is_guess=False)
    assert results.due(50) == [Publish("out")]
    carry_out(results.due(50), results, sinks, lambda: 1)
    assert results.due_ns == 90
    carry_out(results.leaves(Egress("out", None, True)), results, sinks, lambda: 1)
    assert results.due_ns is None, "it is closed"


def test_a_slot_whose_sinks_are_never_due_reads_no_clock_of_theirs() -> None:
    def clock_ns() -> int:
        raise AssertionError("nothing is ever due")

    slot = Slot("a", [], start_ns=0)
    assert rest_of(slot, SlotResults(["out"]), 0, sinks_ns=clock_ns) == slot.rest(0)


def test_a_sink_that_cannot_be_closed_is_still_open_and_is_aborted() -> None:
    results, sinks = SlotResults(["out"]), Sinks(full=["out"])
    with pytest.raises(SinkError, match="full"):
        carry_out(results.leaves(Egress("out", None, True)), results, sinks, lambda: 1)
    assert results.ends("failed", "full") == [Abort("out", "full")]


def test_a_callback_that_exits_behind_a_failure_keeps_neither_slot_nor_sinks_from_ending() -> None:
    results, sinks = SlotResults(["bad", "good"]), Sinks(exits=["bad"])
    said = carry_out(results.ends("failed", "why"), results, sinks, lambda: 1)
    assert said == "\nand then: sink 'bad': SystemExit(3)"
    assert sinks.done[-1] == "abort good why"
    assert results.open == ()


def test_results_that_are_restored_go_on_where_they_were() -> None:
    one, again = SlotResults(["a", "b"]), SlotResults(["a", "b"])
    sinks = Sinks(write=Written(due_ns=50))
    for egress in (Egress("a", batch(1), True), Egress("b", batch(2), False)):
        carry_out(one.leaves(egress), one, sinks, lambda: 9)
    restore(again, save(one))
    assert (again.open, again.due_ns) == (("b",), 50)
    assert again.due(50) == one.due(50)
    assert [r.rows for r in again.reports()] == [1, 1]
