"""How far arrivals have come: told by sources, least over writers, on those channels alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from slackwater.runtime.model import (
    END_NS,
    ON_ARRIVAL,
    PLACE_BITS,
    READY_ONLY,
    START_NS,
    Arrived,
    Message,
)
from slackwater.runtime.model import batch_of as plain_batch
from slackwater.runtime.model.state import save
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.schedule.arrivals import ArrivalFrontier
from slackwater.runtime.schedule.source_node import SourceNode
from slackwater.runtime.sources.arrivals import ArrivalTeller
from tests.support.closings import EndAndAWhile
from tests.support.sources import next_due_ns, take
from tests.support.told import message_of

MS, S = 1_000_000, 1_000_000_000


def told(ns: int, *, end: bool = False, rows: list[int] | None = None) -> Message:
    batch = None
    if rows is not None:
        batch = plain_batch(rows)
        batch = batch.with_(
            arrivals=np.column_stack((np.array(rows), np.zeros(len(rows), np.int64)))
        )
    return message_of(batch, END_NS if end else START_NS, 0, None, Arrived(ns, ns + 1000))


def test_arrivals_have_come_as_far_as_the_slowest_writer_and_never_run_back() -> None:
    frontier = ArrivalFrontier(2)
    frontier.hear(0, told(9))
    assert frontier.advance() is None
    frontier.hear(1, told(7))
    assert frontier.advance() == Arrived(7, 1009)
    frontier.hear(1, told(5))
    assert frontier.advance() is None
    assert frontier.holders() == [1]
    assert frontier.advance(idle={1}) == Arrived(9, 1009)  # nobody waits for it
    assert frontier.advance(idle={0, 1}) is None


def test_nothing_is_told_before_each_writer_was_heard_and_then_since_when_all_were() -> None:
    frontier = ArrivalFrontier(2)
    early = message_of(None, START_NS, 0, None, Arrived(9, 0, since_ns=2))
    frontier.hear(0, early)
    assert frontier.advance() is None
    frontier.hear(1, message_of(None, START_NS, 0, None, Arrived(8, 0, since_ns=7)))
    assert frontier.advance() == Arrived(8, 0, since_ns=7)
    alone = ArrivalFrontier(2)
    alone.hear(0, early)
    alone.hear(1, message_of(None, END_NS, 0))  # it ends without a row
    assert alone.advance() == Arrived(9, 0, since_ns=2)


def test_a_paced_source_tells_nothing_before_its_first_row() -> None:
    source = source_of(rows_at(10, 17), every_ns=2 * S, speed=2.0)
    assert take(source, 0).progress.arrived == Arrived(10 * S, 0, since_ns=10 * S)
    late = source_of(rows_at(10, 17), every_ns=2 * S, speed=2.0, out_of_order="sort", disorder="1s")
    said = []
    while (due_ns := next_due_ns(late, END_NS)) is not None and not late.is_ended:
        said.append(take(late, due_ns).progress.arrived)
    assert [one.since_ns for one in said if one is not None] == [17 * S]  # let go at the end


def test_a_row_that_is_still_held_has_not_gone_on() -> None:
    frontier = ArrivalFrontier(1)
    held = told(9, rows=[4, 6])
    assert held.batch is not None
    frontier.hear(0, held)
    assert frontier.advance([held.batch]) == Arrived(4, 1009)
    assert frontier.advance([held.batch]) is None
    assert frontier.advance() == Arrived(9, 1009)


def test_who_has_ended_is_not_waited_for_and_the_end_is_as_far_as_the_last_of_all() -> None:
    frontier = ArrivalFrontier(2)
    frontier.hear(0, told(30, end=True))
    frontier.hear(1, told(10))
    assert frontier.advance() == Arrived(10, 1030)
    frontier.hear(1, message_of(None, END_NS, 0))
    assert frontier.advance() == Arrived(30, 1030)
    assert frontier.holders() == []


def test_rows_ahead_of_all_are_counted_until_the_others_have_come_as_far() -> None:
    frontier = ArrivalFrontier(2)
    frontier.hear(0, told(9, rows=[5, 9]))
    frontier.hear(0, told(20, rows=[11, 12, 20]))
    assert (frontier.rows_ahead(0), frontier.rows_ahead(1)) == (5, 0)
    frontier.hear(1, told(10))
    frontier.advance()
    assert frontier.rows_ahead(0) == 3


def test_asking_who_is_waited_for_marks_nobody_idle() -> None:
    frontier = ArrivalFrontier(3)
    for writer, ns in enumerate((9, 7, 8)):
        frontier.hear(writer, told(ns))
    before = save(frontier)
    assert frontier.holders(idle={1}) == [2]
    assert frontier.holders(idle={0, 1, 2}) == []
    assert save(frontier) == before
    assert frontier.holders() == [1]


def rows_at(*arrivals_s: int) -> sw.connectors.Input:
    return sw.table(pa.table({"ts": [0] * len(arrivals_s), "at": list(arrivals_s)}))


def source_of(
    rows: sw.connectors.Input, *, every_ns: int, speed: float | None, **options: Any
) -> Any:
    flow = sw.Dataflow("arrivals")
    stream = flow.source(
        "rows", rows, event_time="ts", arrival="at", time_unit="s", speed=speed, **options
    )
    step: Any = flow.steps[stream.name]
    teller = ArrivalTeller(every_ns, rank=3, speed=speed)
    return SourceNode("rows", step.source, step.schema, writer_id=3, start_ns=0, teller=teller)


def test_a_paced_source_says_each_while_how_far_arrivals_are_though_no_row_comes() -> None:
    source = source_of(rows_at(10, 17, 11), every_ns=2 * S, speed=2.0)
    said = []
    while (due_ns := next_due_ns(source, END_NS)) is not None and not source.is_ended:
        message = take(source, due_ns)
        arrived = None if message.progress.arrived is None else message.progress.arrived.ns / S
        said.append((due_ns / S, message.rows, arrived))
    # At twice its pace: the row of 17 is due at 3.5 s. That of 11 counts as of 17.
    assert said == [
        (0.0, 1, 10.0), (1.0, 0, 12.0), (2.0, 0, 14.0), (3.0, 0, 16.0),
        (3.5, 2, 17.0), (3.5, 0, None),
    ]  # fmt: skip


def test_a_source_that_is_not_paced_tells_what_its_rows_say_and_when_it_let_them_go() -> None:
    source = source_of(rows_at(10, 12), every_ns=S, speed=None)
    message = take(source, 5)
    assert message.progress.arrived == Arrived(12 * S, 5, since_ns=10 * S)
    assert message.batch.arrivals.tolist() == [
        [10 * S, 3 << PLACE_BITS], [12 * S, (3 << PLACE_BITS) + 1]
    ]  # fmt: skip
    rows = pa.table({"ts": [5, 9, 4], "at": [5, 9, 20]})
    source = source_of(sw.table(rows), every_ns=S, speed=None, out_of_order="sort", disorder="5s")
    message = take(source, 5)
    assert message.batch is not None
    assert message.batch.event_time_ns.tolist() == [4 * S]
    assert message.batch.arrivals.tolist() == [[20 * S, 3 << PLACE_BITS]]
    assert message.progress.arrived == Arrived(
        20 * S, 5, since_ns=20 * S
    )  # the row that came at 5 will arrive later


def closing_plan(*, also_joins: bool) -> dict[str, Any]:
    flow = sw.Dataflow("ways")
    rows = pa.table({"ts": [1], "at": [1], "key": [1]})
    first, second, other = (
        flow.source(name, sw.table(rows), event_time="ts", arrival="at") for name in "abc"
    )
    both = flow.merge(first.filter(sw.col("key") > 0), second, name="both")
    counts = both.aggregate(
        by="key", window=sw.tumbling("1s"), n=sw.count(), close=EndAndAWhile(0), name="counts"
    )
    counts.sink("out", sw.collect_sink())
    if also_joins:
        both.join(other, on="key", within="1s", name="pairs").sink("pairs-out", sw.collect_sink())
    else:
        other.sink("other-out", sw.collect_sink())
    return {stage.name: stage for stage in plan_stages(flow.graph)}


def test_only_channels_to_windows_that_close_in_time_tell_of_arrivals() -> None:
    stages = closing_plan(also_joins=True)
    tell = {c.name for stage in stages.values() for c in stage.inputs if "arrivals" in c.row_fields}
    assert tell == {"a→both", "b→both", "both→counts"}
    assert stages["a"].arrivals.every_ns == S // 10
    assert stages["c"].arrivals is None


def test_a_merge_opens_where_it_leads_to_such_windows_only() -> None:
    assert closing_plan(also_joins=False)["both"].step.traits.release == ON_ARRIVAL
    assert closing_plan(also_joins=True)["both"].step.traits.release == READY_ONLY


def test_others_are_sent_no_more_messages_and_no_arrivals() -> None:
    """A source that feeds both: words without rows go only where they are asked for."""

    def flow(*, closes: bool) -> sw.Dataflow:
        made = sw.Dataflow("both")
        at = np.array([0, 1, 30, 31]) * 1000
        rows = made.source(
            "rows", sw.table(pa.table({"ts": at * MS, "at": at * MS, "key": [1] * 4})),
            event_time="ts", arrival="at", speed=1.0, time_unit="ns",
        )  # fmt: skip
        rows.aggregate(window=sw.tumbling("1s"), n=sw.count(), name="plain").sink(
            "out", sw.collect_sink()
        )
        settings: Any = {"close": EndAndAWhile(0)} if closes else {}
        rows.aggregate(window=sw.tumbling("1s"), n=sw.count(), name="other", **settings).sink(
            "other-out", sw.collect_sink()
        )
        return made

    sent = {}
    for closes in (False, True):
        job = sw.Simulation(nodes=1).submit(flow(closes=closes))
        report = job.wait()
        assert report.state == "done", report.error
        sent[closes] = {c.name: c.messages for c in report.channels}
    assert sent[True]["rows→plain"] == sent[False]["rows→plain"]
    assert sent[True]["rows→other"] > sent[False]["rows→other"] + 200  # 31 s, ten words a second
