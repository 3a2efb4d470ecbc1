"""What is done at the sinks of a slot, and when: egress, time and the end go in, actions out."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from slackwater.runtime.errors import SinkError
from slackwater.runtime.measure.published import published_notes
from slackwater.runtime.model import Batch
from slackwater.runtime.model.plain import from_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.recovery.checkpoint import saved_results
from slackwater.runtime.schedule import Egress, Rest, Slot, SlotResults, carry_out, rest_of
from slackwater.runtime.schedule.results import Abort, Close, Commit, End, Flush
from slackwater.runtime.sinks.output import FileTraits, SinkTraits

DONE = [End("out"), Flush("out"), Commit("out"), Close("out")]


def batch(*stimuli: int) -> Batch:
    at = np.array(stimuli, dtype=np.int64)
    return Batch(event_time_ns=at, stimulus_time_ns=at, columns={"n": at})


class Sinks:
    """Sinks of a host that do as they are told, and remember it; some refuse."""

    def __init__(self, **answers: Any) -> None:
        self.done: list[str] = []
        self.answers = answers
        self.now_ns = 0

    def clock_ns(self) -> int:
        return self.now_ns

    def begin(self) -> dict[str, int]:
        return {}

    def write(self, sink: str, batch: Batch, first_ordinal: int) -> None:
        self.done.append(f"write {sink} {first_ordinal}+{len(batch)}")

    def end(self, sink: str) -> None:
        self.done.append(f"end {sink}")

    def flush(self, sink: str) -> None:
        self.done.append(f"flush {sink}")

    def commit(self, sink: str) -> None:
        self.done.append(f"commit {sink}")
        if sink in self.answers.get("full", ()):
            raise SinkError("the disk is full")

    def close(self, sink: str) -> None:
        self.done.append(f"close {sink}")

    def abort(self, sink: str, error: str) -> None:
        self.done.append(f"abort {sink} {error}")
        if sink in self.answers.get("exits", ()):
            sys.exit(3)


def of(*sinks: str, holds: tuple[str, ...] = (), **traits: Any) -> SlotResults:
    return SlotResults(dict.fromkeys(sinks, SinkTraits(**traits)), holds=holds)


def holding() -> SlotResults:
    """Return results of a sink that holds: 2 rows in checkpoint 1, 1 row and the end in 2."""
    results = of("out", holds=("out", "elsewhere"))
    for egress, number in (
        (Egress("out", batch(1, 2), False), 1),
        (Egress("out", batch(3), True), 2),
    ):
        assert results.leaves(egress) == []
        results.cut(number)
    return results


def test_a_sink_settles_at_its_own_end_of_stream_and_is_left_alone_behind_it() -> None:
    results, sinks = of("one", "other"), Sinks()
    carry_out(results.leaves(Egress("one", batch(1), is_end=True)), results, sinks, lambda: 5)
    assert results.open == ("other",)
    assert results.ends("stopped") == [Flush("other"), Commit("other"), Close("other")]
    assert results.ends("failed", "a worker died") == [Abort("other", "a worker died")]
    carry_out(results.ends("failed", "a worker died"), results, sinks, lambda: 5)
    assert sinks.done == [
        "write one 0+1",
        *[f"{verb} one" for verb in ("end", "flush", "commit", "close")],
        "abort other a worker died",
    ]
    assert results.ends("done") == []


def test_latency_ends_when_a_write_has_returned_and_committed_rows_have_none() -> None:
    results, sinks = of("out"), Sinks()
    results.resumes({"out": 0, "elsewhere": 7})
    leaves = results.leaves(Egress("out", batch(1, 100), False))
    carry_out(leaves, results, sinks, lambda: 107)
    (report,) = results.reports()
    assert (report.rows, report.latency.min_ns, report.latency.max_ns) == (1, 7, 7)
    assert (report.already_committed, sinks.done) == (1, ["write out 1+1"])


def test_ordinals_count_on_over_batches_that_an_earlier_run_had_committed() -> None:
    results, sinks = of("out"), Sinks()
    results.resumes({"out": 3})
    for size in (3, 1, 2, 2):
        leaves = results.leaves(Egress("out", batch(*range(size)), False))
        carry_out(leaves, results, sinks, lambda: 9)
    assert sinks.done == ["write out 4+2", "write out 6+2"]
    assert results.leaves(Egress("out", None, True)) == DONE


@pytest.mark.parametrize("holds", [(), ("out",)])
def test_rows_of_this_run_that_come_again_count_once_and_without_a_latency(
    holds: tuple[str, ...],
) -> None:
    before, sinks = of("out", holds=holds), Sinks()
    before.resumes({"out": 1})  # an earlier run had two
    before.leaves(Egress("out", batch(1), False))
    again = of("out", holds=holds)
    restore(again, from_plain(saved_results(before, 1)))
    again.resumes({"out": 4}, recovers=True)
    carry_out(again.complete(1), again, sinks, lambda: 9)
    carry_out(again.leaves(Egress("out", batch(2, 3, 4), False)), again, sinks, lambda: 9)
    carry_out(again.leaves(Egress("out", batch(5, 6), False)), again, sinks, lambda: 9)
    again.cut(2)
    carry_out(again.complete(2), again, sinks, lambda: 9)
    assert sinks.done == ["write out 5+1"]
    (report,) = again.reports()
    assert (report.rows, report.already_committed, report.came_again) == (4, 2, 3)
    assert (report.latency.count, report.latency.max_ns, report.measured) == (1, 3, 1)
    assert [note.partition(" rows ")[0] for note in published_notes("done", [report])] == [
        "sink 'out': 2",
        "sink 'out': 3",
    ]


def test_fewer_rows_than_an_earlier_run_committed_are_an_error() -> None:
    place = FileTraits(path="out", format="csv", is_file=False, overwrite=False, rows=None)
    results, said = of("out", files=place), r"'out': the flow gave 2 rows, .* committed 4; .*each"
    results.resumes({"out": 3})
    assert results.leaves(Egress("out", batch(1, 2), False)) == []
    with pytest.raises(SinkError, match=said):
        results.leaves(Egress("out", None, True))
    with pytest.raises(SinkError, match=said):
        results.ends("done")
    assert results.ends("stopped") == [Flush("out"), Commit("out"), Close("out")]


def test_parts_are_cut_by_rows_and_an_output_as_a_whole_is_committed_at_its_end() -> None:
    results, sinks = of("out", rows=2), Sinks()
    carry_out(results.leaves(Egress("out", batch(*range(5)), False)), results, sinks, lambda: 9)
    part = ["flush out", "commit out"]
    assert sinks.done == ["write out 0+2", *part, "write out 2+2", *part, "write out 4+1"]
    whole = of("out", rows=2, only_whole=True)
    assert whole.leaves(Egress("out", batch(1, 2), False))[1:] == [Flush("out")]
    assert whole.ends("stopped") == [Close("out")]
    assert whole.ends("done") == DONE


def test_what_waits_is_committed_when_it_is_due_and_a_slot_sleeps_no_longer_than_that() -> None:
    results, sinks = of("out", rows=3, every_ns=40), Sinks()
    assert (results.due_ns, results.due(10**9)) == (None, [])
    sinks.now_ns = 10
    carry_out(results.leaves(Egress("out", batch(1, 2), False)), results, sinks, lambda: 1)
    assert (results.due_ns, results.due(49)) == (50, [])
    slot = Slot("a", [], start_ns=0)
    assert rest_of(slot, results, 7_000, sinks_ns=lambda: 20) == Rest(7_030, is_guess=False)
    assert rest_of(slot, results, 7_000, sinks_ns=lambda: 99) == Rest(7_000, is_guess=False)
    due = results.due(50)
    assert due == [Flush("out"), Commit("out")]
    carry_out(due, results, sinks, lambda: 1)
    assert results.due_ns is None
    sinks.now_ns = 60
    carry_out(results.leaves(Egress("out", batch(1, 2), False)), results, sinks, lambda: 1)
    assert sinks.done[-1] == "write out 2+2", "the next part begins after what was due"
    assert results.due_ns == 100
    carry_out(results.leaves(Egress("out", None, True)), results, sinks, lambda: 1)
    assert results.due_ns is None, "it is closed"


def test_a_slot_whose_sinks_are_never_due_reads_no_clock_of_theirs() -> None:
    def clock_ns() -> int:
        raise AssertionError("nothing is ever due")

    slot = Slot("a", [], start_ns=0)
    assert rest_of(slot, of("out"), 0, sinks_ns=clock_ns) == slot.rest(0)


def test_a_sink_that_cannot_be_committed_is_still_open_and_is_aborted() -> None:
    results, sinks = of("out"), Sinks(full=["out"])
    with pytest.raises(SinkError, match="full"):
        carry_out(results.leaves(Egress("out", None, True)), results, sinks, lambda: 1)
    assert results.ends("failed", "full") == [Abort("out", "full")]


def test_a_callback_that_exits_behind_a_failure_keeps_neither_slot_nor_sinks_from_ending() -> None:
    results, sinks = of("bad", "good"), Sinks(exits=["bad"])
    said = carry_out(results.ends("failed", "why"), results, sinks, lambda: 1)
    assert said == "\nand then: sink 'bad': SystemExit(3)"
    assert sinks.done[-1] == "abort good why"
    assert results.open == ()


def test_results_that_are_restored_go_on_where_they_were() -> None:
    one, again = of("a", "b", rows=4, every_ns=50), of("a", "b", rows=4, every_ns=50)
    sinks = Sinks()
    one.resumes({"b": 1})
    for egress in (Egress("a", batch(1), True), Egress("b", batch(2, 3, 4), False)):
        carry_out(one.leaves(egress), one, sinks, lambda: 9)
    restore(again, save(one))
    assert (again.open, again.due_ns, again.next_ordinal("b")) == (("b",), 50, 3)
    more = Egress("b", batch(5, 6, 7), False)
    assert [type(action) for action in again.leaves(more)] == [Egress, Flush, Commit]
    assert again.due(50) == [Flush("b"), Commit("b")]
    assert [(r.rows, r.already_committed) for r in again.reports()] == [(1, 0), (1, 2)]


def test_held_rows_leave_with_their_checkpoint_and_the_end_with_its_own() -> None:
    results, sinks = holding(), Sinks()
    assert (results.holds, results.awaits, results.complete(0)) == ({"out"}, True, [])
    carry_out(results.complete(1), results, sinks, lambda: 9)
    assert (sinks.done, results.open, results.awaits) == (["write out 0+2"], ("out",), True)
    carry_out(results.complete(2), results, sinks, lambda: 9)
    assert sinks.done[1:] == ["write out 2+1", "end out", "flush out", "commit out", "close out"]
    assert (results.open, results.awaits, results.ends("done")) == ((), False, [])


def test_a_later_checkpoint_releases_the_rows_of_those_that_were_given_up() -> None:
    results, sinks = holding(), Sinks()
    carry_out(results.complete(2), results, sinks, lambda: 9)
    assert sinks.done[:3] == ["write out 0+2", "write out 2+1", "end out"]


def test_rows_after_the_last_checkpoint_are_held_at_a_stop() -> None:
    results, sinks = of("out", holds=("out",)), Sinks()
    results.leaves(Egress("out", batch(1), False))
    results.cut(1)
    results.leaves(Egress("out", batch(2), True))
    carry_out(results.complete(1), results, sinks, lambda: 9)
    carry_out(results.ends("stopped"), results, sinks, lambda: 9)
    assert sinks.done == ["write out 0+1", "flush out", "commit out", "close out"]
    assert not results.awaits
    (note,) = published_notes("stopped", results.reports())
    assert note == "sink 'out': 1 rows were not written, as no complete checkpoint contains them"


def test_restored_results_release_what_their_checkpoint_held_and_skip_what_the_sink_has() -> None:
    for has, written in ((0, "write out 0+2"), (1, "write out 1+1"), (2, None)):
        again, sinks = of("out", holds=("out",)), Sinks()
        first = of("out", holds=("out",))
        first.leaves(Egress("out", batch(1, 2), False))
        restore(again, from_plain(saved_results(first, 7)))
        again.resumes({"out": has - 1})
        carry_out(again.complete(7), again, sinks, lambda: 9)
        again.leaves(Egress("out", batch(3), False))
        again.cut(8)
        carry_out(again.complete(8), again, sinks, lambda: 9)
        assert sinks.done == [*filter(None, [written]), "write out 2+1"], f"has {has}"


def test_a_sink_with_fewer_rows_than_at_the_checkpoint_is_an_error() -> None:
    results, again, sinks = of("out"), of("out"), Sinks()
    carry_out(results.leaves(Egress("out", batch(1, 2), False)), results, sinks, lambda: 9)
    restore(again, save(results))
    again.resumes({"out": 1})
    with pytest.raises(
        SinkError, match=r"'out': it has 0 rows, and had been given 2 .* loses data"
    ):
        again.resumes({"out": -1})


@pytest.mark.parametrize(("goes_on", "verb"), [(False, Commit), (True, Abort)])
def test_one_file_is_not_shown_at_a_stop_after_which_its_job_goes_on(
    goes_on: bool, verb: type[Any]
) -> None:
    files = FileTraits(path="out.csv", format="csv", is_file=True, overwrite=False, rows=None)
    results = SlotResults({"out": SinkTraits(files=files)}, goes_on=goes_on)
    assert verb in map(type, results.ends("stopped"))
