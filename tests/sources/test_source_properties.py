"""However the input is cut and whenever rows are taken, the same rows leave in the same order.

The machine is compared with a source written down row by row, as slow and plain as it can be.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.ingest import memory
from slackwater.runtime.errors import OrderError
from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import START_NS, Message
from slackwater.runtime.model.schema import inside_schema
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.schedule.source_node import SourceNode
from slackwater.runtime.sources.spec import SourceSpec
from tests.support.readers import JitterInput
from tests.support.sources import next_due_ns, take

MANY_TAKES = 5_000
"""Far more than 40 rows need: due times lie within 2,000 ns, and time goes on by 14 a take."""


@dataclass
class Case:
    """Rows (event time, writer, promise) and the settings of their source."""

    rows: list[tuple[int, str, int]]
    settings: dict[str, Any]
    seed: int

    def machine(self, seed: int) -> SourceNode:
        event_time, writer, promise = zip(*self.rows, strict=True) if self.rows else ((), (), ())
        columns = {
            "t": pa.array(event_time, pa.int64()),
            "w": pa.array(writer, pa.string()),
            "p": pa.array(promise, pa.int64()),
            "row": pa.array(range(len(self.rows)), pa.int32()),
        }
        jittered = JitterInput(memory.table(pa.table(columns), batch_rows=7), seed)
        spec = SourceSpec(input=jittered, event_time="t", **self.settings)
        schema = inside_schema(jittered.schema())
        return SourceNode("s", spec, schema, writer_id=0, start_ns=100)


@dataclass
class Run:
    """What left a source: row numbers in order, and how it ended."""

    rows: list[int] = field(default_factory=list)
    late: int = 0
    refused: bool = False
    promises: list[int] = field(default_factory=lambda: [START_NS])
    """After 0, 1, 2 … rows of the input; only `plain` fills it."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    settings: dict[str, Any] = {"out_of_order": draw(st.sampled_from(["error", "sort", "late"]))}
    settings["disorder_ns"] = draw(st.integers(0, 15))
    if settings["out_of_order"] == "sort":
        settings["disorder_ns"] += 1
    settings["speed"] = draw(st.sampled_from([None, 1.0, 0.7]))
    settings["writer"] = draw(st.sampled_from([None, "w"]))
    settings["promise"] = draw(st.sampled_from([None, col("p")]))
    # Mostly forward with steps back, so that every verdict is common.
    rows, now = [], 0
    for step in draw(st.lists(st.integers(-12, 12), max_size=40)):
        now += step + 3
        behind = draw(st.integers(-2, 20))
        rows.append((now, draw(st.sampled_from("abc")), now - behind))
    return Case(rows, settings, draw(st.integers(0, 2**32)))


def plain(case: Case) -> Run:
    """The rules, one row at a time."""
    settings, run = case.settings, Run()
    sorts = settings["out_of_order"] == "sort"
    promised, newest = START_NS, START_NS
    held: list[tuple[int, int]] = []
    of_writer: dict[str, int] = {}
    for row, (event_time, writer, promise) in enumerate(case.rows):
        own = of_writer.get(writer, START_NS) if settings["writer"] and not sorts else START_NS
        own = max(own - settings["disorder_ns"], START_NS)
        is_late = event_time < max(promised, own)
        if is_late and settings["out_of_order"] == "error":
            run.refused = True
            return run
        newest = max(newest, event_time)
        of_writer[writer] = max(of_writer.get(writer, START_NS), event_time)
        if settings["promise"] is not None:
            promised = max(promised, promise)
        knows_newest = settings["promise"] is None or sorts
        if knows_newest and not (
            settings["writer"] and settings["promise"] is None and settings["disorder_ns"] == 0
        ):
            promised = max(promised, newest - settings["disorder_ns"])
        run.promises.append(promised)
        if is_late:
            run.late += 1
        elif sorts:
            heapq.heappush(held, (event_time, row))
            while held and held[0][0] <= promised:
                run.rows.append(heapq.heappop(held)[1])
        else:
            run.rows.append(row)
    run.rows += [row for _, row in sorted(held)]
    return run


def drive(case: Case, seed: int) -> tuple[Run, list[Message], dict[int, int]]:
    """Take at random times and sizes; restart from a snapshot now and then."""
    chance = random.Random(seed)  # noqa: S311 - jitter, not a secret
    promises = plain(case).promises
    sorts = case.settings["out_of_order"] == "sort"
    source = case.machine(seed)
    run, messages, now = Run(), [], 0
    stimulus: dict[int, int] = {}  # {row: stimulus_time_ns}
    try:
        for _ in range(MANY_TAKES):
            if source.is_ended:
                break
            now += chance.choice([0, 1, 5, 50])
            due = next_due_ns(source, now)
            message = take(source, now, max_rows=chance.choice([1, 2, 7, None]))
            if message is None:
                continue  # not due, or the input has nothing just now
            assert due is None or due <= now
            messages.append(message)
            assert source.progress.promise_ns == message.progress.promise_ns
            if not message.progress.is_end and not sorts:
                assert message.progress.promise_ns == promises[source.rows_in]
            if message.batch is not None:
                rows = message.batch.columns["row"].tolist()
                run.rows += rows
                stimulus |= dict(zip(rows, message.batch.stimulus_time_ns.tolist(), strict=True))
                assert max(stimulus.values()) <= now
            seen = [event_time for event_time, _, _ in case.rows[: source.rows_in]]
            assert source.newest_ns == max(seen, default=START_NS)
            assert source.rows_in == len(run.rows) + source.late_dropped + source.held
            if chance.random() < 0.1:
                state = save(source)
                source = case.machine(chance.randrange(2**32))
                restore(source, state)
        else:
            pytest.fail("the source never ends")
    except OrderError:
        run.refused = True
    run.late = source.late_dropped
    return run, messages, stimulus


@given(cases())
def test_any_cut_of_the_input_gives_the_rows_of_the_plain_source(case: Case) -> None:
    expected = plain(case)
    first, _, due = drive(case, case.seed)
    second, _, due_again = drive(case, case.seed + 1)
    assert first.refused == second.refused == expected.refused
    assert first.rows == second.rows == expected.rows
    assert first.late == second.late == expected.late
    if case.settings["speed"] is not None:
        assert due == due_again


@given(cases())
def test_promises_never_run_backwards_and_no_later_row_breaks_one(case: Case) -> None:
    run, messages, _ = drive(case, case.seed)
    promised = START_NS
    for message in messages:
        if message.batch is not None:
            assert int(message.batch.event_time_ns.min()) >= promised
        assert message.progress.promise_ns >= promised
        promised = message.progress.promise_ns
    ends = [message.progress.is_end for message in messages]
    assert not any(ends[:-1])
    assert run.refused or ends[-1]


@given(cases())
def test_sorted_rows_leave_in_order_of_time_then_of_arrival(case: Case) -> None:
    case.settings |= {"out_of_order": "sort", "disorder_ns": case.settings["disorder_ns"] + 1}
    run, _, _ = drive(case, case.seed)
    left = [(case.rows[row][0], row) for row in run.rows]
    assert left == sorted(left)
