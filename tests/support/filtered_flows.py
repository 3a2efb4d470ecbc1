"""Flows at random with many filters, for rewrites to be tried on; rows with many ties of time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from slackwater.runtime.plan.traits import Share

TEXT = ("a", "b", "ü", None)
MS = 1_000_000


def draw_filtered_flow(seed: int, *, rows: int = 60) -> sw.Dataflow:
    """Return a flow of two or three sources, some steps, and filters behind most of them."""
    rng = np.random.default_rng(seed)
    flow = sw.Dataflow(f"filtered-{seed}")
    streams = [_source(rng, flow, rows) for _ in range(int(rng.integers(2, 4)))]
    for _ in range(int(rng.integers(2, 6))):
        made = _step(rng, streams[int(rng.integers(len(streams)))], streams)
        for _ in range(int(rng.integers(0, 3))):
            made = made.filter(_predicate(rng, made))
        streams.append(made)
    fed = {name for step in flow.steps.values() for name in step.inputs}
    ends = [each for each in streams if each.name not in fed]
    for number, end in enumerate(ends, start=1):
        kept = end.filter(_predicate(rng, end) & _predicate(rng, end))
        kept.with_columns(at_ns=sw.event_time()).sink(f"out-{number}", sw.collect_sink())
    return flow


def results_of(flow: sw.Dataflow, seed: int) -> dict[str, bytes]:
    """Return {sink: its rows, in order, as bytes} of a run whose costs and delays vary."""
    rng = np.random.default_rng(seed)
    job = sw.Simulation(
        int(rng.integers(1, 4)),
        seed=seed,
        cost=sw.testing.CostModel(jitter=3.0),
        link=sw.testing.LinkModel(jitter_ns=int(rng.choice([0, 10**6]))),
    ).submit(
        flow, limits=sw.Limits(fuse=bool(rng.random() < 0.7), max_slice_rows=50, min_slice_rows=7)
    )
    report = job.wait()
    assert report.ledger.is_balanced, str(report.ledger)
    return {
        name: written(job.result(name))
        for name, step in flow.steps.items()
        if step.traits.kind == "sink"
    }


def written(table: pa.Table) -> bytes:
    """Return a table's schema and rows as bytes, in their order.

    Arrow's own bytes would tell whether there is a bitmap that says that no value is null.
    """
    return f"{table.schema}\n{table.to_pylist()}".encode()


def _source(rng: np.random.Generator, flow: sw.Dataflow, rows: int) -> sw.Stream:
    size = int(rng.integers(1, rows))
    times = rng.integers(0, 3, size).cumsum() * 250 * MS  # a third of them tie
    columns: dict[str, Any] = {
        "ts": pa.array(times, pa.timestamp("ns")),
        "k": pa.array(rng.integers(0, 3, size), pa.int64()),
        "g": pa.array([TEXT[n] for n in rng.integers(0, 4, size)], pa.string()),
        "n": pa.array(rng.integers(-5, 5, size), pa.int64()),
        "x": pa.array(np.where(rng.random(size) < 0.2, np.nan, rng.integers(-8, 8, size) / 4)),
    }
    options: dict[str, Any] = {}
    if rng.random() < 0.25:
        options = {"writer": "k"}
    elif rng.random() < 0.25:
        options = {"out_of_order": "late", "disorder": "250ms"}
        columns["ts"] = pa.array(times - rng.integers(0, 2, size) * 250 * MS, pa.timestamp("ns"))
    elif rng.random() < 0.3:
        options = {"speed": 1_000.0}
    name = f"in-{len(flow.steps) + 1}"
    return flow.source(name, sw.table(pa.table(columns)), event_time="ts", **options)


def _step(rng: np.random.Generator, stream: sw.Stream, streams: list[sw.Stream]) -> sw.Stream:
    number = len(stream.flow.steps)
    other = streams[int(rng.integers(len(streams)))]
    match int(rng.integers(10)):
        case 0:
            made = stream.with_columns({"n": sw.col("k") * 2, f"m{number}": sw.col("k")})
        case 1:
            kept = [name for name in stream.columns if name != "k" and rng.random() < 0.8]
            made = stream.select({"k": "k", **{f"{name}_{number}": name for name in kept}})
        case 2:
            like = [each for each in streams if each.schema.equals(stream.schema)]
            made = stream.merge(like[int(rng.integers(len(like)))])
        case 3 | 4:
            made = _joined(rng, stream, other)
        case 5:
            window = sw.tumbling("1s") if rng.random() < 0.5 else sw.sliding("2s", "500ms")
            whole = stream.aggregate({f"rows{number}": sw.count()}, by=["k"], window=window)
            made = whole.drop("window_start", "window_end")
        case 6:
            made = stream.dedupe(on="k", within="1s")
        case 7 | 8:
            made = _matched(rng, stream, number)
        case _:
            made = stream.with_columns(k=sw.col("k") + 0) if rng.random() < 0.3 else stream
    return made


def _matched(rng: np.random.Generator, stream: sw.Stream, number: int) -> sw.Stream:
    """Return matches of a pattern: of two events, some with none in between."""
    first, then = (
        sw.patterns.event(f"{name}{number}", where=_predicate(rng, stream)) for name in ("a", "b")
    )
    sequence = (
        sw.patterns.seq(first, then)
        if rng.random() < 0.6
        else sw.patterns.seq(first, sw.patterns.no(then), then)
    )
    return stream.pattern(sequence, within="1s", by="k")


def _joined(rng: np.random.Generator, stream: sw.Stream, other: sw.Stream) -> sw.Stream:
    suffix = f"_{len(stream.flow.steps)}"
    if rng.random() < 0.7:
        return stream.join(other, on="k", within="500ms", suffix=suffix)
    share: Share = "keys" if rng.random() < 0.5 else "all"
    return stream.join(
        other, on="k", within="500ms", suffix=suffix, replicas=2, share=share
    ).merge()  # whose rows have an order again


def _predicate(rng: np.random.Generator, stream: sw.Stream) -> sw.Expr:
    """Return a condition over some columns; now and then one that may be refused, or asks when."""
    names = list(stream.columns)
    name = names[int(rng.integers(len(names)))]
    kind = stream.schema.field(name).type
    if rng.random() < 0.1:
        return sw.event_time() % (500 * MS) == 0
    if pa.types.is_string(kind):
        return sw.col(name) != "a"
    if pa.types.is_floating(kind):
        return sw.col(name) > -1.5
    if pa.types.is_timestamp(kind):
        return sw.col(name).is_null() | (sw.col("k") < 2)
    if rng.random() < 0.2:
        return sw.col(name) * 3 < 4  # a whole product may not fit, so it stays where it is
    return sw.col(name).is_in([0, 1, 2, 3, -4]) if rng.random() < 0.5 else sw.col(name) != 1
