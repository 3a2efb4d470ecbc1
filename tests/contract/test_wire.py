"""Rows of every operator are of the types that its step says, and travel.

Each flow here has operators with the options that change what leaves, over columns of every type;
stages lie apart, so all that leaves goes through frames, as it does on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.model import Batch, Message
from slackwater.runtime.model.nullable import Nullable, without_mask
from slackwater.runtime.operators.aggregate.step import CombineStep
from slackwater.runtime.operators.join.fresh import FreshStep
from slackwater.runtime.plan.plan import Channel
from slackwater.runtime.registry.operators import MACHINES
from slackwater.runtime.simulate.ways import Ways
from tests.support.closings import EndAndAWhile
from tests.support.wire import through_frames

MS = 1_000_000
SIZE = 90
KINDS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*KINDS, "float32", "float64")


def rows(seed: int) -> pa.Table:
    """Return rows of every type that may be read, a tenth of them late, by 200 ms."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 1_000, SIZE)) * MS
    times[::10] = np.maximum(times[::10] - 200 * MS, 0)
    small = rng.integers(0, 4, SIZE)
    arrivals = -(-np.maximum.accumulate(times) // (50 * MS)) * 50 * MS  # several at once
    text = pa.array([None if n == 3 else f"t{n}" for n in small.tolist()])
    own: dict[str, Any] = {kind: pa.array(small, kind) for kind in NUMBERS}
    own |= {
        "ts": pa.array(times, pa.timestamp("ns")),
        "arrival": pa.array(arrivals, pa.timestamp("ns")),
        "zoned": pa.array(times // 1_000, pa.timestamp("us", "Europe/Warsaw")),
        "day": pa.array(small.astype(np.int32), pa.date32()),
        "flag": pa.array(small > 1),
        "text": text,
        "large": text.cast(pa.large_string()),
        "word": text.dictionary_encode(),
        "value": rng.random(SIZE),
        "id": np.arange(SIZE),
    }
    return pa.table(own)


def source(
    flow: sw.Dataflow, name: str, data: pa.Table | None = None, late: Any = "late"
) -> sw.Stream:
    given = sw.table(rows(1) if data is None else data, batch_rows=40)
    options: dict[str, Any] = {"out_of_order": late, "speed": 1.0}
    if late == "late":
        options["disorder"] = "100ms"
    return flow.source(name, given, event_time="ts", arrival="arrival", **options)


def late_ones(flow: sw.Dataflow) -> sw.Stream:
    """Return a stream of which half the rows come behind the others, by up to 300 ms."""
    data = rows(3)
    lag_ns = np.linspace(0, 300, SIZE).astype(np.int64) * MS
    late_ns = np.maximum.accumulate(data["arrival"].to_numpy().astype(np.int64) + lag_ns)
    at = data.schema.get_field_index("arrival")
    data = data.set_column(at, "arrival", pa.array(late_ns, pa.timestamp("ns")))
    return source(flow, "in time").merge(
        source(flow, "late", data=data), slack="0s", name="late ones"
    )


def two(flow: sw.Dataflow) -> tuple[sw.Stream, sw.Stream]:
    return source(flow, "a"), source(flow, "b", rows(2))


Made = list[sw.Stream]
MIN_MAX = {
    f"{word}_{kind}": how(kind)
    for word, how in (("min", sw.min), ("max", sw.max), ("sum", sw.sum), ("mean", sw.mean))
    for kind in NUMBERS
}
ALL = {
    **MIN_MAX,
    "n": sw.count(),
    "some": sw.count("text"),
    "middle": sw.quantile("value", 0.5),
}
CHOSEN = {
    "first": sw.first("text"),
    "last": sw.last("zoned"),
    "words": sw.count_distinct("word"),
    "at most": sw.arg_max("day", by="value"),
    "top": sw.top_k("int8", 2),
    "all": sw.collect("text", where=sw.col("flag")),
    "spread": sw.std("value"),
}


def each_row(flow: sw.Dataflow) -> Made:
    a, b = two(flow)
    col = sw.col
    made = {f"more_{kind}": col(kind) + 1 for kind in NUMBERS}
    made |= {f"half_{kind}": col(kind) / 2 for kind in NUMBERS}
    made |= {"later": col("zoned") + sw.duration("1s"), "apart": col("zoned") - col("ts")}
    made |= {"is": col("text") == "t1", "in": col("int8").is_in([1, 2]), "not": ~col("flag")}
    return [
        a.filter(col("flag")).with_columns(**made),
        b.select("ts", "word", "zoned", other="day"),
        flow.merge(a, b, name="both"),
        b.with_columns(parts=col("text").str.split("t")).explode("parts", name="by part"),
        a.map_rows(_row, MAPPED, name="by row"),
        a.map_batches(_batch, MAPPED, name="by batch"),
        a.flat_map(lambda row: [_row(row)] * 2, MAPPED, name="twice by row"),
        b.limit(20, name="some"),
        b.lookup({"int8": [1], "tag": ["x"], "n": [2.5]}, on="int8", name="by key"),
    ]


MAPPED = {"n": "int8", "x": "float32", "is": "bool", "text": "string", "at": "timestamp"}


def _row(row: Any) -> dict[str, Any]:
    return {"n": 1, "x": None, "is": row["flag"], "text": row["text"], "at": row["ts"]}


def _batch(columns: Any) -> dict[str, Any]:
    return {
        "n": columns["int64"],
        "x": columns["int8"] / 2,
        "is": columns["flag"],
        "text": columns["text"],
        "at": columns["ts"],
    }


def windows(flow: sw.Dataflow) -> Made:
    a, b = two(flow)
    tumbling, sliding = sw.tumbling("100ms"), sw.sliding("200ms", "50ms")
    keys = ("text", "large", "flag", "word", "int8", "uint64")
    late = late_ones(flow)
    revised, dropped = (
        late.aggregate(window=sliding, by="word", late=how, slack="0s", name=how, n=sw.count())
        for how in ("correct", "drop")
    )
    return [
        *(a.aggregate(ALL, window=tumbling, by=one, name=f"by {one}") for one in keys),
        a.aggregate(ALL, window=sliding, name="of all"),
        revised,
        dropped,
        dropped.late(),
        a.aggregate(ALL, window=sliding, by="text", drift="4ms", name="three"),
        b.aggregate(ALL, window=tumbling, by="int8", drift="uint8", name="three, by column"),
        b.aggregate(ALL, window=tumbling, by="text", replicas=2, name="shared"),
        a.aggregate(ALL, window=sw.session("20ms"), by="word", name="sessions"),
        b.aggregate(CHOSEN, window=sw.rows(7), by="flag", replicas=2, name="chosen"),
        a.aggregate(CHOSEN, window=sw.calendar("day"), by="text", name="days"),
        a.aggregate(CHOSEN, window=sw.cumulative("1d", "6h"), by="text", name="days so far"),
    ]


def closings(flow: sw.Dataflow) -> Made:
    a, b = two(flow)
    both = flow.merge(a, b, name="both")
    ways = (
        sw.closing.probslack(0.3, first_rows=4, ordered=False),
        sw.closing.probslack(0.3, first_rows=4, ordered=False, type="text"),
        sw.closing.event_driven(),
        sw.closing.mean_delay(),
        EndAndAWhile(0),
    )
    made = [
        both.aggregate(
            window=sw.sliding("200ms", "50ms"),
            by="word",
            close=close,
            late="correct" if number % 2 else "drop",
            replicas=1 + number % 2,
            name=f"closing {number}",
            n=sw.count(),
        )
        for number, close in enumerate(ways)
    ]
    pairs = a.join(b, on="int8", within="20ms", name="pairs")
    new = pairs.aggregate(window=sw.tumbling("1s"), close=EndAndAWhile(0), name="new", n=sw.count())
    return [*made, new]


def joins(flow: sw.Dataflow) -> Made:
    a, b = two(flow)
    options: list[dict[str, Any]] = [
        {"on": "int8"},
        {"on": ("word", "flag")},
        {"on": "text", "where": sw.col("value") < sw.col("value_right")},
        {"on": "large", "drift": "2ms"},
        {"on": "int8", "drift": "uint8", "replicas": 2, "share": "all"},
    ]
    late = late_ones(flow)
    options += [
        {"on": "text", "replicas": 2, "keep": "slack", "slack": "0s"},
        {"on": "int8", "keep": "slack", "slack": "0s"},
    ]
    made = [
        (late if "slack" in one else a).join(b, within="20ms", name=f"join {number}", **one)
        for number, one in enumerate(options)
    ]
    others = [
        a.join(b, on="int8", within="20ms", how=how, name=how)
        for how in ("left", "right", "outer", "semi", "anti")
    ]
    newest = a.asof(b, on="word", tolerance="20ms", name="newest before")
    return [*made, made[5].late(), made[6].late("left"), *others, newest]


class Looks:
    """The rows of a key at one time, and once more a while later."""

    def __init__(self) -> None:
        self.due_ns: int | None = None

    def on_rows(self, key: Any, rows: Any) -> list[dict[str, Any]]:
        self.due_ns = rows.event_time_ns + 4
        first = rows[0]
        return [
            {
                **dict.fromkeys(MAPPED),
                "n": 1,
                "text": key if isinstance(key, str) else None,
                "is": first["flag"],
                "at": first["ts"],
            }
        ]

    def on_time(self, key: Any, t: int) -> list[dict[str, Any]]:
        return [{"n": len(str(key)), "x": 0.5, "is": True, "text": str(key), "at": t}]


def keyed(flow: sw.Dataflow) -> Made:
    a, b = two(flow)
    first, then = sw.col("value") < 0.4, sw.col("value") > 0.6
    return [
        a.dedupe("word", within="30ms"),
        a.dedupe(("flag", "int8"), within="30ms", replicas=2, name="twice"),
        a.key_by("word").process(Looks, MAPPED, within="100ms"),
        a.key_by("flag", "int8").process(Looks, MAPPED, within="1s", replicas=2, name="two keys"),
        a.key_by("word").followed_by(first=first, then=then, within="100ms"),
        b.followed_by(first=first, then=then, within="90ms", by="int8", drift="4ms", name="drifts"),
        b.followed_by(first=first, then=then, within="90ms", by="large", replicas=2, name="shared"),
        a.top_k("value", 2, by="word", window=sw.tumbling("100ms"), rank="place", name="great"),
        b.silence("flag", after="20ms", name="silent"),
    ]


def patterns(flow: sw.Dataflow) -> Made:
    a, b = two(flow)
    late = late_ones(flow)
    small = sw.patterns.event("small", where=sw.col("value") < 0.4)
    great = sw.patterns.event("great", where=sw.col("value") > small["value"] + 0.1)
    other = sw.patterns.event("other", of_type=("t1", "t2"))
    scopes: list[dict[str, Any]] = [
        {"within": "80ms"},
        {"within": 12},
        {"window": sw.tumbling("100ms")},
        {"window": sw.sliding("100ms", "40ms"), "selection": "each", "consumption": "zero"},
        {"window": sw.patterns.opened_by(small, within="120ms"), "matches": 1},
        {"window": sw.patterns.count_window(20, every=5), "id": "id"},
    ]
    sheds: dict[str, Any] = {"shed": sw.shedding.espice("1h"), "matches": 1}
    windows = {"window": sw.sliding("100ms", "40ms")}
    of_time: list[dict[str, Any]] = [
        {**windows, "replicas": 2},
        {"within": "80ms", "selection": "cumulative", "id": "text"},
        {"window": sw.tumbling("100ms"), **sheds},
        {"window": sw.patterns.opened_by(small, within="120ms"), **sheds},
    ]
    every = [*scopes, *of_time, {"within": "80ms", "slack": "0s"}]
    made = [
        (late if "slack" in one else (a, b)[number % 2]).pattern(
            sw.patterns.seq(small, great)
            if number % 2
            else sw.patterns.seq(small, sw.patterns.any_of(1, other)),
            type="text",
            by="flag" if "shed" in one else ("word", "int8"),
            name=f"pattern {number}",
            **one,
        )
        for number, one in enumerate(every)
    ]
    return [*made, made[-1].late()]


def tables(flow: sw.Dataflow) -> Made:
    a, b = two(flow)
    newest = a.to_table("word", replicas=2)
    given = source(flow, "ops", rows(2), late=sw.order.k_slack("100ms", late="pass"))
    ops = given.with_columns(op=sw.lit("+I")).changes("op")
    return [
        newest.join(b.to_table("int8", name="of b"), "flag", how="outer"),
        ops.aggregate(by="word", n=sw.count(), most=sw.max("value"), total=sw.sum("value")),
        a.over(by="flag", last="50ms", mean=sw.mean("value"), words=sw.count_distinct("word")),
        a.over(by="word", replicas=2, n=sw.count(), name="before"),
    ]


FLOWS: list[Callable[[sw.Dataflow], Made]] = [
    *(each_row, windows, closings, joins, keyed, patterns, tables)
]


def values_of(batch: Batch) -> Iterator[tuple[str, Any, Any]]:
    """Yield of each array: its name, type and values, of which a NaN equals a NaN."""
    every: dict[str, Any] = {
        **batch.columns,
        "event time": batch.event_time_ns,
        "stimulus time": batch.stimulus_time_ns,
        "writers": batch.writers,
        "marks": batch.marks,
        "arrivals": batch.arrivals,
    }
    for name, column in every.items():
        values = without_mask(column)
        if isinstance(values, Nullable):
            yield name, values.dtype, (values.values.tobytes(), values.valid.tobytes())
        elif isinstance(values, np.ndarray):
            yield name, values.dtype, values.tobytes()
        elif values is not None:
            yield name, values.type, values.to_pylist()


class Compared:
    """Frames, and which channels had rows in theirs: these are as they were."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}

    def wire(self, channel: Channel) -> Callable[[Message], Message]:
        carried = through_frames(channel)

        def compared(message: Message) -> Message:
            came = carried(message)
            if message.batch is not None:
                assert came.batch is not None
                was = [one for one in values_of(message.batch) if one[0] in _names(channel)]
                assert list(values_of(came.batch)) == was, channel.name
                self.rows[channel.source] = self.rows.get(channel.source, 0) + message.rows
            return came

        return compared


def _names(channel: Channel) -> set[str]:
    return {"event time", "stimulus time", *channel.row_fields, *channel.schema.names}


def flow_of(make: Callable[[sw.Dataflow], Made]) -> sw.Dataflow:
    flow = sw.Dataflow(make.__name__)
    for number, stream in enumerate(make(flow)):
        stream.sink(f"out-{number}", sw.collect_sink())
    return flow


@pytest.mark.parametrize("make", FLOWS)
def test_what_leaves_an_operator_travels_as_it_is(
    make: Callable[[sw.Dataflow], Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = Compared()
    monkeypatch.setattr(Ways, "wire", compared.wire)
    flow = flow_of(make)
    sinks = [name for name in flow.steps if name.startswith("out-")]
    placement = dict.fromkeys(sinks, "node-2")
    job = sw.Simulation(nodes=2).submit(flow, placement=placement)
    report = job.wait()
    assert report.state == "done"
    empty = [one.name for one in report.sinks if not one.rows]
    assert not empty, "nothing left, so nothing was seen"


def test_every_operator_is_in_one_of_the_flows() -> None:
    steps = {type(step) for make in FLOWS for step in flow_of(make).steps.values()}
    left = {CombineStep, FreshStep}  # the plan makes one; of the other the input has no end
    assert set(MACHINES) - left <= steps
