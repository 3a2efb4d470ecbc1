"""Late rows in a flow as it is written: `.late()`, and windows that are corrected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import DuplicateName, FlowError, SettingError
from slackwater.runtime.plan.plan import plan_stages
from tests.support.streams import flow_with_streams, message, types

OURS = ["late_step", "late_event_time", "late_by_ns", "late_dropped"]


def counted(stream: sw.Stream, **options: Any) -> sw.Stream:
    return stream.aggregate(by="line", window=sw.tumbling("1s"), n=sw.count(), **options)


def test_late_rows_of_an_aggregate_have_its_inputs_columns_and_ours() -> None:
    _, buses, _ = flow_with_streams()
    late = counted(buses).late()
    assert list(late.columns) == [*buses.columns, *OURS]
    assert types(late)["late_dropped"] == pa.bool_()


def test_late_rows_of_a_join_have_its_keys_or_the_columns_of_a_side() -> None:
    _, buses, loops = flow_with_streams()
    pairs = buses.join(loops, on="area", within="5s")
    ours = ["late_step", "late_side", *OURS[1:]]
    assert list(pairs.late().columns) == ["area", *ours]
    assert list(pairs.late("right").columns) == [*loops.columns, *ours]
    assert types(pairs.late("left"))["area"] == pa.int32()


@pytest.mark.parametrize(
    ("write", "error", "says"),
    [
        (lambda buses, _: buses.late(), FlowError, "'buses' is not an operator that keeps rows"),
        (lambda buses, _: buses.late(), FlowError, "on what join, asof, aggregate, dedupe, top_k"),
        (lambda buses, _: counted(buses).late("left"), FlowError, "has one input; write late()"),
        (
            lambda buses, loops: buses.join(loops, on="area", within="1s").late("both"),
            SettingError,
            "side='both' must be 'left' or 'right' or None",
        ),
        (
            lambda buses, _: counted(buses.with_columns(late_by_ns=1)).late(),
            DuplicateName,
            "has a column 'late_by_ns' already",
        ),
        (lambda buses, _: counted(buses, late="mend"), SettingError, "must be 'drop' or 'correct'"),
        (
            lambda buses, _: (
                counted(buses.with_columns(line=sw.lit("a")), late="correct")
                .with_columns(x=1)
                .aggregate(window=sw.tumbling("1s"), n=sw.count(), name="twice")
            ),
            FlowError,
            "step 'twice' is downstream of 'aggregate-1', whose windows leave again",
        ),
        (
            lambda buses, loops: counted(buses, late="correct").join(
                counted(loops.with_columns(line=sw.lit("a"))), on="line", within="1s", name="pairs"
            ),
            FlowError,
            "step 'pairs' is downstream of 'aggregate-1'",
        ),
        (
            lambda buses, _: buses.aggregate(
                window=sw.tumbling("1s"), revision=sw.count(), late="correct"
            ),
            DuplicateName,
            "late='correct' adds a column 'revision'",
        ),
    ],
)
def test_what_cannot_be_late_is_refused_where_it_is_written(
    write: Callable[[sw.Stream, sw.Stream], object], error: type[Exception], says: str
) -> None:
    _, buses, loops = flow_with_streams()
    assert says in message(error, lambda: write(buses, loops))


def test_late_rows_of_a_corrected_aggregate_may_be_counted() -> None:
    _, buses, _ = flow_with_streams()
    late = counted(buses, late="correct").late()
    late.aggregate(by="line", window=sw.tumbling("1m"), n=sw.count())


def test_results_must_go_somewhere_even_if_late_rows_do() -> None:
    flow, buses, loops = flow_with_streams()
    loops.sink("loops-out", sw.collect_sink())
    counted(buses).late().sink("late", sw.collect_sink())
    assert "step 'aggregate-1' feeds nothing" in message(FlowError, flow.check)


def test_only_the_columns_that_somebody_reads_of_a_late_row_travel() -> None:
    flow, buses, loops = flow_with_streams()
    pairs = buses.join(loops, on="area", within="5s", name="pairs", replicas=2)
    pairs.select("area").sink("out", sw.collect_sink())
    late = pairs.late("left", name="missed").select("line", "late_by_ns")
    late.sink("late", sw.collect_sink())
    stages = {stage.name: stage for stage in plan_stages(flow.graph)}
    assert [channel.source for channel in stages["missed"].inputs] == ["pairs.1", "pairs.2"]
    assert stages["missed"].inputs[0].schema.names == ["line", "late_by_ns"]
    assert stages["pairs.1"].inputs[0].schema.names == ["area", "line"]
    text = flow.explain()
    assert "takes    what came too late to count in full at pairs" in text
    assert "order    as each replica puts them aside; flow.merge(…) after it gives" in text
