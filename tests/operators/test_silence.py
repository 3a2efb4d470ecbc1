"""Silences of keys: beside a look at each key alone, and as users write them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import slackwater as sw
from slackwater.runtime.errors import DuplicateName, FlowError, SettingError, TypeMismatch
from slackwater.runtime.model import END_NS, READY_ONLY, START_NS
from slackwater.runtime.model.hashes import key_hashes
from slackwater.runtime.operators.silence.machine import SilenceMachine
from slackwater.runtime.operators.silence.step import SilenceStep
from tests.operators.literal import Leaves, Segment, any_row, reads_of, run, streams
from tests.support.chance import chance

ROWS = pa.schema({"k": pa.int64(), "text": pa.string()})
VALUES = any_row([1, 2, 2**40], ["b", "a", None])
STEP = SilenceStep(
    name="silent",
    inputs=("rows",),
    schema=pa.schema({"k": pa.int64(), "silent_since": pa.timestamp("ns")}),
    keys=("k",),
    after_ns=3,
    release=READY_ONLY,
)


def hash_of(key: int) -> int:
    return int(key_hashes([np.array([key])], 1)[0])


def literal(segments: list[Segment], after_ns: int) -> tuple[Leaves, int]:
    """Return the silences between the rows of each key, and after its last, and late rows."""
    rows, late, watermark = list[Any](), 0, START_NS
    for segment in segments:
        early = [row for row in (*segment.late, *segment.rows) if row.time >= watermark]
        late += len(segment.late) + len(segment.rows) - len(early)
        rows += early
        watermark = segment.watermark
    silences = []
    for key in {row.values[0] for row in rows}:
        own = [row for row in rows if row.values[0] == key]
        following = [row.time for row in own[1:]] + [END_NS]
        for row, then in zip(own, following, strict=True):
            if then - row.time > after_ns:
                silences.append((row.time + after_ns, hash_of(key), row.stimulus, key, row.time))
    silences.sort()
    leaves = [
        tuple(map(repr, (time, heard, key, since))) for time, _, heard, key, since in silences
    ]
    return leaves, late


@given(segments=streams([VALUES]), cut=chance)
def test_each_silence_leaves_once_in_order_however_rows_are_cut(
    segments: list[Segment], cut: Random
) -> None:
    machine = SilenceMachine(STEP, most_kept_rows=10**6)
    leaves = run(machine, reads_of(segments, [ROWS], cut))
    assert (leaves, machine.late_dropped) == literal(segments, STEP.after_ns)


FIXES = {
    "t": [0, 10, 11, 12, 40, 41, 60],
    "bus": ["a", "a", "b", "a", "b", "a", "c"],
}


def results(made: Any, **how: Any) -> list[tuple[Any, ...]]:
    flow = sw.Dataflow("fixes")
    fixes = flow.source("fixes", sw.table(FIXES, **how), event_time="t", time_unit="s")
    silent = made(fixes).with_columns(at=sw.event_time() // 10**9)
    silent.sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        return [
            (
                row["bus"],
                None if row["silent_since"] is None else row["silent_since"].second,
                row["at"],
            )
            for row in job.result("out").to_pylist()
        ]


def test_a_row_has_the_moment_at_which_the_silence_has_lasted_so_long() -> None:
    made = results(lambda s: s.silence("bus", after="15s"))
    assert made == [("b", 11, 26), ("a", 12, 27), ("b", 40, 55), ("a", 41, 56), ("c", 0, 75)]


@pytest.mark.parametrize("batch_rows", [1, 3, 100])
def test_keys_that_are_known_are_awaited_from_the_first_row_on(batch_rows: int) -> None:
    made = results(
        lambda s: s.key_by("bus").silence(after="15s", keys=["a", "x", "x"]), batch_rows=batch_rows
    )
    assert made[0] == ("x", None, 15)
    assert made[1:] == results(lambda s: s.silence("bus", after="15s"))


def test_a_known_key_is_silent_once_and_watched_again_when_it_comes() -> None:
    made = results(lambda s: s.silence("bus", after="15s", keys=["c"]))
    assert [row for row in made if row[0] == "c"] == [("c", None, 15), ("c", 0, 75)]


def test_a_row_exactly_so_much_later_ends_the_silence_in_time() -> None:
    assert [
        at for bus, _, at in results(lambda s: s.silence("bus", after="29s")) if bus == "a"
    ] == [70]
    assert ("b", 11, 40) not in results(lambda s: s.silence("bus", after="29s"))
    assert ("b", 11, 39) in results(lambda s: s.silence("bus", after="28s"))


@pytest.mark.parametrize(
    ("made", "kind", "says"),
    [
        (lambda s: s.silence((), after="1s"), FlowError, "silence has no key; name one"),
        (lambda s: s.silence("bus", after="0s"), SettingError, "after"),
        (
            lambda s: s.silence("bus", after="1s", keys=[]),
            SettingError,
            "names no key; write a list of some",
        ),
        (
            lambda s: s.silence("bus", after="1s", keys="abc"),
            SettingError,
            "must be a list or None",
        ),
        (
            lambda s: s.silence("bus", after="1s", keys=[1]),
            TypeMismatch,
            "does not fit column 'bus', which is string",
        ),
        (
            lambda s: s.silence(("bus", "t"), after="1s", keys=["a"]),
            SettingError,
            "write a tuple of 2 values for each key",
        ),
        (
            lambda s: s.silence("bus", after="1s", keys=["a"], replicas=2),
            FlowError,
            "omit replicas= or keys=",
        ),
        (
            lambda s: s.rename({"bus": "silent_since"}).silence("silent_since", after="1s"),
            DuplicateName,
            "rename it before",
        ),
    ],
)
def test_what_cannot_be_watched_is_refused(made: Any, kind: type[Exception], says: str) -> None:
    fixes = sw.Dataflow("fixes").source("fixes", sw.table(FIXES), event_time="t", time_unit="s")
    with pytest.raises(kind) as problem:
        made(fixes)
    assert says in str(problem.value)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (9.5, pa.int64()),
        (datetime(2020, 1, 1, 5), pa.date32()),  # noqa: DTZ001 - a date has no zone
        (timedelta(milliseconds=1), pa.duration("s")),
        (1e40, pa.float32()),
    ],
)
def test_a_known_key_that_would_change_in_its_column_is_refused(
    key: Any, kind: pa.DataType
) -> None:
    with pytest.raises(TypeMismatch, match=r"'quiet': keys= .*would change in it; write values"):
        keyed(kind).silence("k", after="1s", keys=[key], name="quiet")


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (9.0, pa.int64()),
        (2**64 - 1, pa.uint64()),
        (0.1, pa.float32()),
        (date(2020, 1, 1), pa.date32()),
        ("a", pa.dictionary(pa.int32(), pa.string())),
        (None, pa.int64()),
    ],
)
def test_a_known_key_that_fits_its_column_is_awaited(key: Any, kind: pa.DataType) -> None:
    assert keyed(kind).silence("k", after="1s", keys=[key]).columns == ("k", "silent_since")


def keyed(kind: pa.DataType) -> sw.Stream:
    rows = pa.table({"t": [1], "k": pa.array([None], kind)})
    return sw.Dataflow("f").source("rows", sw.table(rows), event_time="t", time_unit="s")
