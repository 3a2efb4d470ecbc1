"""The clock of a source put right by columns of its rows: [thesis] Eq. 3.15."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from examples.real_data import phone_network
from slackwater.ingest import memory
from slackwater.runtime.errors import OrderError, SchemaError, SettingError
from slackwater.runtime.model import LATEST_NS, LONGEST_NS
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.sources.clock_columns import ClockColumns
from tests.support.sources import drain, machine, next_due_ns, take, times

BY = sw.clocks.clock_columns("off", unit="ns")
WITHIN = sw.clocks.clock_columns("off", "bound", unit="ns")


def ints(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


def test_event_time_is_the_clocks_time_and_its_offset() -> None:
    source = machine({"t": [10, 20, 30], "off": [5, 5, 7]}, clock=BY)
    (rows, _) = drain(source)
    assert times([rows]) == [15, 25, 37]
    assert rows.batch.columns["t"].tolist() == [10, 20, 30]  # what the clock said stays


@pytest.mark.parametrize(("unit", "scale"), [("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9)])
def test_offset_and_bound_have_a_unit_of_their_own(unit: Any, scale: int) -> None:
    clock = sw.clocks.clock_columns("off", "bound", unit=unit)
    source = machine({"t": [10], "off": [-3], "bound": [2]}, clock=clock, time_unit="us")
    assert times(drain(source)) == [10_000 - 3 * scale]
    assert source.clock_facts["largest_bound_ns"] == 2 * scale


def test_two_clocks_an_hour_apart_are_in_order_once_they_are_put_right() -> None:
    data = {"t": [100, 3_101, 102, 3_103], "w": ["a", "b"] * 2, "off": [0, -3_000] * 2}
    assert times(drain(machine(data, clock=BY))) == [100, 101, 102, 103]
    with pytest.raises(OrderError, match="row 2"):
        drain(machine(data))


def test_what_is_late_is_decided_by_the_time_put_right() -> None:
    data = {"t": [100, 100, 100], "off": [0, 10, 4]}
    source = machine(data, clock=BY, out_of_order="late", disorder_ns=5)
    assert times(drain(source)) == [100, 110]
    assert (source.rows_in, source.late_dropped, source.held) == (3, 1, 0)


def test_what_has_not_happened_yet_is_decided_by_the_time_put_right() -> None:
    data = {"t": [60, 61, 62], "a": [10, 11, 12], "off": [-50, -50, -50]}
    source = machine(data, clock=BY, arrival="a", ahead_ns=0)
    assert times(drain(source)) == [10, 11, 12]
    assert source.early == 0


def test_arrivals_are_by_our_clock_and_stay_as_they_are() -> None:
    data = {"t": [60, 61], "a": [10, 30], "off": [-50, -50]}
    source = machine(data, clock=BY, arrival="a", speed=1.0, start_ns=1_000)
    assert (next_due_ns(source, 0), times([take(source, 1_000)]), next_due_ns(source, 0)) == (
        1_000,
        [10],
        1_020,
    )


def test_a_promise_is_by_the_clock_of_its_row() -> None:
    data = {"t": [60, 61], "off": [-50, -50], "p": [55, 61]}
    source = machine(data, clock=BY, promise=sw.col("p"))
    assert [one.progress.promise_ns for one in drain(source, max_rows=1)][:2] == [5, 11]


@pytest.mark.parametrize("promise", [-(2**63), 2**63 - 1])
def test_a_promise_at_the_end_of_time_does_not_wrap(promise: int) -> None:
    data = {"t": [60, 61, 62], "off": [LONGEST_NS] * 3, "p": ints(60, promise, 62)}
    source = machine(data, clock=BY, promise=sw.col("p"), out_of_order="late")
    drain(source)
    assert source.late_dropped == (promise > 0)  # the row behind it, if it was the end


def test_the_report_has_the_extremes_of_all_writers() -> None:
    data = {"t": [1, 2, 3], "w": ["a", "b", "a"], "off": [5, -7, 6], "bound": [1, 9, 2]}
    source = machine(data, clock=WITHIN, writer="w", out_of_order="late", disorder_ns=100)
    assert source.clock_facts == {}
    drain(source)
    assert source.clock_facts == {
        "writers": 2,
        "smallest_offset_ns": -7,
        "largest_offset_ns": 6,
        "largest_bound_ns": 9,
        "jumps": 0,
    }


def test_a_jump_is_an_offset_that_contradicts_the_last_one_of_its_writer() -> None:
    offsets = [0, 100, 3, 90, 50, 100]  # 50 and 0 are more than 2 × 10 apart, 100 and 90 are not
    data = {"t": [1, 2, 3, 4, 5, 6], "w": ["a", "b"] * 3, "off": offsets, "bound": [10] * 6}
    settings: Any = {"clock": WITHIN, "writer": "w", "out_of_order": "late", "disorder_ns": 1_000}
    source = machine(data, **settings)
    drain(source)
    assert source.clock_facts["jumps"] == 1


def test_a_clock_that_jumps_back_makes_rows_late_and_none_are_lost() -> None:
    data = {"t": [100, 200, 300], "off": [0, -150, -150], "bound": [1, 1, 1]}
    source = machine(data, clock=WITHIN, out_of_order="late")
    assert times(drain(source)) == [100, 150]
    assert (source.rows_in, source.late_dropped, source.clock_facts["jumps"]) == (3, 1, 1)


@pytest.mark.data
def test_phones_whose_clocks_were_wrong_by_half_a_minute_have_the_servers_time() -> None:
    table = pq.read_table(phone_network() / "umts_d1_d5.parquet")
    right_ms, offset_ms = (table[name].to_numpy() for name in ("detect_time_ms", "ntp_offset_ms"))
    data = {"t": right_ms - offset_ms, "off": offset_ms, "w": table["device"]}
    source = machine(
        pa.table(data),
        clock=sw.clocks.clock_columns("off", unit="ms"),
        time_unit="ms",
        out_of_order="late",
        disorder_ns=3_600 * 10**9,
    )
    assert times(drain(source)) == (right_ms * 10**6).tolist()
    told = source.clock_facts
    assert told["smallest_offset_ns"] == -29_942 * 10**6
    assert told["largest_offset_ns"] == 1_388 * 10**6


writers = st.integers(0, 3)
rows = st.lists(
    st.tuples(writers, st.integers(-20, 20), st.integers(0, 5)), min_size=1, max_size=30
)


@given(rows, st.integers(1, 30))
def test_how_the_input_is_cut_shows_in_nothing_that_is_told(
    given_rows: list[tuple[int, int, int]], cut: int
) -> None:
    writer, offset, bound = (np.array(one) for one in zip(*given_rows, strict=True))
    data = {"t": 100 * np.arange(len(writer)), "w": writer, "off": offset, "bound": bound}
    source = machine(
        memory.table(data, batch_rows=cut),
        clock=WITHIN,
        writer="w",
        out_of_order="late",
        disorder_ns=1_000,
    )
    assert sorted(times(drain(source))) == sorted((data["t"] + offset).tolist())
    last: dict[int, tuple[int, int]] = {}
    jumps = 0
    for of, off, within in given_rows:
        if of in last:
            jumps += abs(off - last[of][0]) > within + last[of][1]
        last[of] = (off, within)
    told = source.clock_facts
    assert (told["writers"], told["jumps"]) == (len(last), jumps)
    assert told["smallest_offset_ns"] == offset.min()
    assert told["largest_offset_ns"] == offset.max()


def test_a_restored_source_knows_its_clocks() -> None:
    data = {"t": [1, 2, 3], "off": [5, 90, 90], "bound": [1, 1, 1]}
    given = memory.table(data, batch_rows=1)
    first = machine(given, clock=WITHIN)
    take(first, 0)
    second = machine(given, clock=WITHIN)
    restore(second, save(first))
    assert second.clock_facts == first.clock_facts
    assert times(drain(second)) == [92, 93]
    assert second.clock_facts["jumps"] == 1


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"off": [1, LONGEST_NS + 1]}, "the offset of its clock, 'off', is .* ns in row 1"),
        ({"off": [1, -LONGEST_NS - 1]}, "at most 73 years, either way"),
        ({"off": [1, 2], "bound": [0, -1]}, "the bound of its clock, 'bound', is -1 ns in row 1"),
        ({"off": pa.array([1, None])}, "clock column 'off' is null in 1 of the 2 rows"),
        ({"t": ints(1, LATEST_NS), "off": [1, 2]}, r"'t \+ off' is .* in row 1"),
        ({"off": pa.array([2**63, 2**63], pa.uint64())}, "is 9223372036854775808 ns in row 0"),
    ],
)
def test_an_offset_that_cannot_be_is_refused(columns: dict[str, Any], said: str) -> None:
    data = {"t": [1, 2], "bound": [0, 0], **columns}
    with pytest.raises(SchemaError, match=said) as refused:
        drain(machine(data, clock=WITHIN, time_unit="ns"))
    assert "source 's'" in str(refused.value)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"off": [0.5]}, "clock column 'off' has type double, and offsets and bounds are integers"),
        ({"of": [1]}, "clock column 'off' is not there; the nearest is 'of'"),
    ],
)
def test_a_column_that_is_no_offset_is_refused_when_the_flow_is_written(
    columns: dict[str, Any], said: str
) -> None:
    flow = sw.Dataflow("clocks")
    with pytest.raises(SchemaError, match=said):
        flow.source("s", sw.table({"t": [1], **columns}), event_time="t", clock=BY)


def test_settings_that_name_no_columns_are_refused() -> None:
    flow = sw.Dataflow("clocks")
    with pytest.raises(SettingError, match=r"source 's': clock='off' names no columns; write"):
        flow.source("s", sw.table({"t": [1]}), event_time="t", clock="off")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="unit='min' must be"):
        sw.clocks.clock_columns("off", unit="min")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="offset=3 must be text"):
        sw.clocks.clock_columns(3, unit="ms")  # type: ignore[arg-type]
    unnamed = ClockColumns(offset=3, bound=None, unit="ms")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="column 3 is not a column's name; write it as text"):
        flow.source("s", sw.table({"t": [1]}), event_time="t", clock=unnamed)


def test_explain_says_by_what_a_clock_is_put_right() -> None:
    flow = sw.Dataflow("clocks")
    data = sw.table({"t": [1], "off": [1], "bound": [1]})
    flow.source("s", data, event_time="t", clock=WITHIN).sink("out", sw.collect_sink())
    assert "its clock corrected by off ± bound in ns" in flow.explain()
