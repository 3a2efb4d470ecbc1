"""Flows at random, by seed: small, and with everything in them that keeps state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Trial
from slackwater.runtime.model import READY_ONLY
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.graph import StepGraph
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.tune import SetRelease
from tests.support.closings import EndAndAWhile
from tests.support.rules import rule

MS = 1_000_000
NOBODY = sw.table(
    pa.table(
        {
            "ts": pa.array([], pa.int64()),
            "key": pa.array([], pa.int64()),
            "text": pa.array([], pa.string()),
            "value": pa.array([], pa.float64()),
        }
    )
)

PRICES = pa.table({"key": [0, 1, None], "price": [2.5, None, 4.0]})
NODES = ("node-1", "node-2", "node-3")


RECENT = {"text": "string", "n": "int64", "value": "float64"}


class Recent:
    """What came of a text so far, and that it has been silent for 40 ms."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.due_ns: int | None = None

    def on_rows(self, text: str, rows: Any) -> list[dict[str, Any]]:
        self.values += [row["value"] for row in rows]
        self.due_ns = rows.event_time_ns + 40 * MS
        return [{"text": text, "n": len(self.values), "value": sum(self.values)}]

    def on_time(self, text: str, t: int) -> list[dict[str, Any]]:
        return [{"text": text, "n": -t, "value": self.values.pop()}]


def any_source(flow: sw.Dataflow, name: str, chance: Random, apart: Random) -> sw.Stream:
    """Some 60 rows over up to 2 s, in one of the ways in which a source may be written.

    What is drawn from `apart` came later: so what a seed has drawn from `chance` stays.
    """
    rng = np.random.default_rng(chance.randrange(2**32))
    rows = chance.choice([0, 15, 60, 120])
    kind = chance.choice(["ordered", "sort", "late", "promise", "writers", "idle", "ahead"])
    times = np.sort(rng.integers(0, 2_000, rows)) * MS
    delays = rng.integers(0, chance.choice([1, 300]), rows) * MS
    order = np.argsort(times + delays, kind="stable")
    arrivals = (times + delays)[order]
    writers = rng.integers(0, 4, rows)
    if kind == "ordered":
        order, arrivals = np.arange(rows), np.maximum.accumulate(times + delays)
    elif kind in ("writers", "idle"):  # each in order, and they take turns
        order = np.arange(rows)
        arrivals = np.maximum.accumulate(times + delays)
    times = times[order]
    if kind in ("writers", "idle"):
        times = np.maximum(times - writers * 40 * MS, 0)
    if kind == "ahead":
        times = times + (rng.random(rows) < 0.1) * 900 * MS
    data = pa.table(
        {
            "ts": times,
            "arrival": arrivals,
            "known": np.minimum.accumulate(times[::-1])[::-1] if rows else times,
            "writer": writers,
            "key": rng.integers(0, 3, rows),
            "text": pa.array([f"t{n % 5}" for n in range(rows)], pa.string()),
            "value": rng.random(rows),
        }
    )
    options: dict[str, Any] = {"arrival": "arrival"}
    if kind in ("sort", "late", "ahead"):
        options |= {"out_of_order": "sort" if kind == "sort" else "late", "disorder": "200ms"}
    if kind == "promise":
        options["promise"] = sw.col("known")
    if kind in ("writers", "idle"):
        options["writer"] = "writer"
        options["out_of_order"] = "late"
    if kind == "idle" or (kind != "writers" and chance.random() < 0.3):
        options["idle"] = chance.choice(["30ms", "150ms"])
    if kind == "ahead":
        options["ahead"] = "100ms"
    if chance.random() < 0.7:
        options["speed"] = chance.choice([1.0, 2.5])
    if apart.random() < 0.4:
        data = ordered_otherwise(data, options, apart, waits=flow.release == READY_ONLY)
    if apart.random() < 0.3:
        data = off_by_a_clock(data, options, apart)
    cut = sw.table(data, batch_rows=chance.choice([7, 50, 1_000]))
    stream = flow.source(name, cut, event_time="ts", time_unit="ns", **options)
    return stream.select("ts", "key", "text", "value")


def ordered_otherwise(
    data: pa.Table, options: dict[str, Any], chance: Random, *, waits: bool
) -> pa.Table:
    """Let a source order its rows by number, some lost and some twice, or as K-slack does.

    Args:
        data: its rows.
        options: of the source, to be changed.
        chance: what is drawn from.
        waits: all gates wait for what is promised: then nothing may come behind a promise.
    """
    for one in ("promise", "ahead", "disorder", "idle"):
        options.pop(one, None)
    late: Any = "drop" if waits else chance.choice(["drop", "pass"])
    k_slacks = (
        sw.order.k_slack("60ms", late=late),
        sw.order.mp_k_slack(late=late),
        sw.order.aq_k_slack(window="100ms", coverage=0.9, late=late),
        sw.order.ldop(window="50ms", late=late),
    )
    if chance.random() < 0.5:
        options["out_of_order"] = chance.choice(k_slacks)
        return data
    if has_writers := chance.random() < 0.5:
        options["writer"] = "writer"
    options["sequence"] = "number"
    options["out_of_order"] = sw.order.by_sequence(
        timeout=chance.choice(["40ms", "300ms"]),
        late=late,
        restart=chance.choice(["first", "added"]),
        merge=has_writers and (waits or chance.random() < 0.5),  # else a silent one may come late
        wraps=6,
        farthest=20,
    )
    writers = data["writer"].to_numpy() if has_writers else np.zeros(len(data), np.int64)
    order = np.lexsort((data["ts"].to_numpy(), writers))
    number = np.empty(len(data), np.int64)
    number[order] = np.arange(len(data)) - writers[order].searchsorted(writers[order])
    copies = chance.choices([1, 0, 2], (0.94, 0.03, 0.03), k=len(data))
    kept = np.repeat(np.arange(len(data)), copies)
    return data.append_column("number", pa.array(number % 64)).take(kept)


def off_by_a_clock(data: pa.Table, options: dict[str, Any], chance: Random) -> pa.Table:
    """Let the times of a source be those of a clock that is off, and its rows say by how much."""
    rng = np.random.default_rng(chance.randrange(2**32))
    off = rng.integers(-50, 50) + rng.integers(0, 3, len(data))
    bound = None if chance.random() < 0.5 else "bound"
    options["clock"] = sw.clocks.clock_columns("off", bound, unit="ms")
    for name in ("ts", "known"):
        at = data.schema.get_field_index(name)
        data = data.set_column(at, name, pa.array(data[name].to_numpy() - off * MS))
    return data.append_column("off", pa.array(off)).append_column("bound", pa.array(off % 3))


def any_pattern(rows: sw.Stream, chance: Random) -> sw.Stream:
    """A small value, then a greater one, and perhaps none that is smaller; in any scope."""
    small = sw.patterns.event("small", where=sw.col("value") < 0.4)
    great = sw.patterns.event("great", where=sw.col("value") > small["value"] + 0.2)
    other = sw.patterns.event("other", of_type=chance.choice(["t1", ("t2", "t3")]))
    scope: dict[str, Any] = chance.choice(
        [
            {"within": "80ms"},
            {"within": 12},
            {"window": sw.patterns.opened_by(small, within="120ms"), "matches": 1},
            {"window": sw.sliding("100ms", "40ms")},
            {"window": sw.patterns.count_window(20, every=5)},
        ]
    )
    parts: list[Any] = [
        small,
        chance.choice([great, sw.patterns.repeat(other, 1, 2), sw.patterns.any_of(1, other)]),
    ]
    if chance.random() < 0.3 and scope.get("within") != 12 and "matches" in scope:
        parts.append(sw.patterns.no(other))
    keys = chance.choice([("key",), ("key", "text")])
    leaves: dict[str, Any] = {
        "selection": chance.choice(["first", "last", "each"]),
        "consumption": chance.choice(["consumed", "zero"]),
    }
    replicas = chance.choice([1, 2])
    return rows.key_by(*keys).pattern(
        sw.patterns.seq(*parts), type="text", replicas=replicas, name="found", **leaves, **scope
    )


def any_intervals(rows: sw.Stream, chance: Random) -> sw.Stream:
    """Sessions, or all rows, of a key or two."""
    return rows.aggregate(
        by=chance.choice(["key", "text", ("key", "text")]),
        window=chance.choice(
            [
                sw.session("30ms"),
                sw.session("150ms"),
                sw.everything(),
                sw.rows(7, every=3),
                sw.opened_by(sw.col("value") > 0.7, "60ms"),
            ]
        ),
        name="visits",
        replicas=chance.choice([1, 2]),
        n=sw.count(),
        total=sw.sum("value"),
        median=sw.quantile("value", 0.5),
    )


def any_small_step(rows: sw.Stream, chance: Random) -> sw.Stream:
    """Draw a step that ranks rows, says who is silent, or keeps the first."""
    several: dict[str, Any] = {"replicas": chance.choice([1, 2]), "name": "small"}
    window = chance.choice([None, sw.tumbling("100ms"), sw.sliding("120ms", "50ms")])
    by = chance.choice(["key", ("key", "text")])
    kind = chance.choice(["top_k", "newest", "silence", "limit"])
    if kind == "top_k":
        return rows.top_k("value", 2, by=by, window=window, rank="place", **several)
    if kind == "newest":
        return rows.newest(by, window=window, **several)
    if kind == "silence" or rows.flow.release != READY_ONLY:
        return rows.silence(by, after=chance.choice(["15ms", "200ms"]), **several)
    return rows.limit(20, name="small")


def any_so_far(rows: sw.Stream, chance: Random) -> sw.Stream:  # noqa: PLR0911 - one for each kind
    """Draw aggregates of the rows before each row, early results, or rows that change.

    Steps whose rows change need gates that wait.
    """
    several: dict[str, Any] = {"replicas": chance.choice([1, 2]), "name": "so-far"}
    by = chance.choice(["key", ("key", "text")])
    kind = chance.choice(["over", "totals", "early", "lookup", "table", "tables", "sessions"])
    if kind == "over":
        reach: dict[str, Any] = chance.choice(
            [{}, {"rows": 3}, {"last": "60ms"}, {"last": "40ms", "ahead": "20ms"}]
        )
        most, least = sw.max("value"), sw.count(where=sw.col("value") < 0.5)
        return rows.over(by=by, most=most, least=least, **reach, **several)
    if kind == "totals":
        several |= {"every": chance.choice([None, "50ms"]), "slack": None}
        totals = rows.aggregate(by=by, n=sw.count(), most=sw.max("value"), **several)
        if chance.random() < 0.5:
            return totals
        return totals.aggregate(by="key", mean=sw.mean("most"), slack=None, name="so-far-again")
    if kind == "early":
        early: Any = chance.choice(["30ms", 3])
        return rows.aggregate(
            by=by, window=sw.tumbling("100ms"), n=sw.count(), early=early, **several
        )
    if kind == "sessions":
        return rows.aggregate(by=by, window=sw.session("40ms"), n=sw.count(), **several)
    looked = rows.lookup(PRICES, on="key", how=chance.choice(["left", "inner"]), name="prices")
    if kind == "lookup":
        return looked.cross(pa.table({"vat": [0.19]}), name="so-far")
    table = looked.drop("ts").to_table(by, slack=None, name="newest")
    if kind == "table":
        return table
    return rows.drop("ts").join(
        table,
        on="key",
        within=None,
        how=chance.choice(["inner", "left", "right", "outer", "semi", "anti"]),
        slack=None,
        **several,
    )


def any_drift(chance: Random) -> Any:
    """Draw `drift=`: mostly none; a length; a column that all streams have."""
    if chance.random() < 0.7:
        return None
    return chance.choice(["4ms", sw.clocks.clock_bound("key", most="1500us", unit="ms")])


def any_flow(seed: int, prefix: str = "") -> Plan:  # noqa: PLR0912, PLR0915 - a branch for each thing that is drawn
    """Two or three sources; merges, joins, aggregates, replicas; one or two sinks; small limits.

    Names of its steps begin with the prefix.
    """
    chance = Random(seed)  # noqa: S311 - a draw, not a secret
    way: dict[str, Any] = chance.choice(
        [{"slack": None}, {"slack": "0s"}, {"slack": "60ms"}, *[{"deadline": "4s"}] * 3]
    )
    late = Random(~seed)  # noqa: S311 - what is drawn here is drawn apart, so that seeds stay
    way["keep"] = late.choice([None, "promise", "slack"])
    flow = sw.Dataflow(f"any-{seed}", **way)
    apart = Random(seed + 2**34)  # noqa: S311 - drawn apart, so that seeds stay
    streams = [any_source(flow, f"s{n}", chance, apart) for n in range(chance.choice([2, 2, 3]))]
    first, second = streams[0], streams[1]
    if seed % 8 == 5:  # so many writers are kept otherwise
        silent = [flow.source(f"none-{n}", NOBODY, event_time="ts") for n in range(16)]
        first = flow.merge(first, *silent, name="many")
    if len(streams) == 3 or chance.random() < 0.3:
        first = flow.merge(first, streams[-1], name="both")
    if chance.random() < 0.5:
        first = first.filter(sw.col("value") < chance.choice([0.2, 0.9]))
    own = Random(seed + 2**32)  # noqa: S311 - drawn apart, so that seeds stay
    if own.random() < 0.4:
        alike = own.choice(["key", ("key", "text")])
        first = first.dedupe(alike, within="30ms", replicas=own.choice([1, 2]), name="once")
    if own.random() < 0.4:
        recent = second.key_by("text").process(
            Recent, RECENT, within="100ms", replicas=own.choice([1, 2]), name="recent"
        )
        recent.sink("recent-out", sw.collect_sink())
    if apart.random() < 0.2:
        jumps = second.key_by("key").followed_by(
            first=sw.col("value") < 0.3,
            then=sw.col("value") > 0.6,
            within="100ms",
            drift=any_drift(apart),
            replicas=apart.choice([1, 2]),
            name="jumps",
        )
        jumps.sink("jumps-out", sw.collect_sink())
    found = Random(seed + 2**33)  # noqa: S311 - likewise
    if found.random() < 0.4:
        any_pattern(second, found).sink("found-out", sw.collect_sink())
    visits = Random(seed + 2**35)  # noqa: S311 - drawn apart, so that seeds stay
    if visits.random() < 0.3:
        any_intervals(second, visits).sink("visits-out", sw.collect_sink())
    small = Random(seed + 2**36)  # noqa: S311 - likewise
    if small.random() < 0.4:
        any_small_step(second, small).sink("small-out", sw.collect_sink())
    so_far = Random(seed + 2**37)  # noqa: S311 - likewise
    before = {*flow.steps}
    if so_far.random() < 0.4:
        any_so_far(second, so_far).sink("so-far-out", sw.collect_sink())
    added = {*flow.steps} - before
    fans_out = chance.random() < 0.3
    replicas = chance.choice([1, 2, 2])
    if chance.random() < 0.6:
        if fans_out:
            first.sink("raw", sw.collect_sink())
        share: Any = chance.choice(["keys", "all"])
        on = chance.choice(["key", "text"])
        pairs = first.join(
            second,
            on=on,
            within=chance.choice(["20ms", "300ms"]),
            name="pairs",
            replicas=replicas,
            share=share,
            drift=any_drift(apart),
        )
        if chance.random() < 0.5:
            pairs = pairs.filter(sw.col("value") < sw.col("value_right"))
        pairs.sink("pairs-out", sw.collect_sink())
        if pairs.name == "pairs" and late.random() < 0.5:
            pairs.late().sink("late", sw.collect_sink())
        if chance.random() < 0.5:
            counted(pairs, chance, replicas=1, drift=any_drift(apart)).sink(
                "counts", sw.collect_sink()
            )
    else:
        merged = flow.merge(first, second, name="all")
        close = any_closing(Random(seed + 2**33))  # noqa: S311 - drawn apart, so that seeds stay
        counts = counted(
            merged,
            chance,
            replicas=replicas,
            late=late.choice(["drop", "correct"]),
            close=close,
            drift=None if close is not None else any_drift(apart),
        )
        counts.sink("counts", sw.collect_sink())
        if late.random() < 0.5:
            counts.late().merge(counts.late(name="again")).sink("late", sw.collect_sink())
    stages = plan_stages(prefixed(flow.graph, prefix))

    def of_stage(name: str) -> Random:
        return (
            so_far if name.removeprefix(prefix) in added else visits if "visits" in name else chance
        )

    plan = place(
        flow.name,
        stages,
        list(NODES),
        placement={stage.name: of_stage(stage.name).choice(NODES) for stage in stages},
        deadline_ns=flow.deadline_ns,
    )
    limits = Limits(
        credit_rows=chance.choice([16, 4_096]),
        gate_rows=chance.choice([8, 4_096]),
        max_slice_rows=chance.choice([6, 40]),
        min_slice_rows=2,
        # A pattern that holds more ends its job, a join lets go of some.
        most_kept_rows=late.choice([4_096 if added or "found" in flow.steps else 8, 4_096]),
        slice_ns=60_000,
        source_gap_ns=chance.choice([1, 5 * MS]),
    )
    return replace(plan, limits=limits)


def prefixed(graph: StepGraph, prefix: str) -> StepGraph:
    """Return a graph whose steps have longer names."""
    steps = {
        prefix + name: replace(
            step, name=prefix + name, inputs=tuple(prefix + own for own in step.inputs)
        )
        for name, step in graph.steps.items()
    }
    return replace(graph, steps=steps)


def any_closing(chance: Random) -> Any:
    if chance.random() < 0.5:
        return None
    kind = chance.choice([None, "text"])
    return chance.choice(
        [
            sw.closing.probslack(0.3, first_rows=4, ordered=False, type=kind),
            sw.closing.event_driven(type=kind),
            sw.closing.mean_delay(),
            sw.closing.ignore(),
            EndAndAWhile(50 * MS),
        ]
    )


def counted(
    stream: sw.Stream,
    chance: Random,
    *,
    replicas: int,
    late: Any = "drop",
    close: Any = None,
    drift: Any = None,
) -> sw.Stream:
    chosen = {"top": sw.top_k("value", 2), "text_of": sw.arg_max("text", "value")}
    wide = sw.sliding("200ms", "50ms")
    if close is None and Random(stream.flow.name).random() < 0.5:  # noqa: S311 - drawn apart
        wide = sw.cumulative("200ms", "50ms")
    return stream.aggregate(
        None if drift else chosen,
        by=chance.choice(["key", "text", ("key", "text")]),
        window=chance.choice([sw.tumbling("100ms"), wide]),
        name="counted",
        replicas=replicas,
        late=late,
        close=close,
        drift=drift,
        n=sw.count(),
        mean=sw.mean("value"),
        most=sw.max("value"),
        median=sw.quantile("value", 0.5),
        spread=sw.std("value"),
        first=sw.first("value"),
        distinct=sw.count_distinct("value"),
        some=sw.sum("value", where=sw.col("value") > 0.5),
    )


class AnyHolds:
    """Sets slacks and holds by chance, and tries others beside them, as the tuner does."""

    name = "any holds"

    def __init__(self, steps: Sequence[Subject], seed: int) -> None:
        self._steps, self._chance = steps, Random(seed)  # noqa: S311 - a draw, not a secret
        self._tries = Random(~seed)  # noqa: S311 - drawn apart, so that seeds stay

    def begin(self) -> list[SetRelease]:
        return self.decide(-1, {})

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> list[SetRelease]:
        del second, samples
        chance = self._chance
        return [
            SetRelease(
                step,
                rule(
                    chance.choice([None, 0, 100 * MS]),
                    hold_ns=chance.choice([None, 50 * MS, 300 * MS]),
                ),
                by="chance",
                trials=self._trials(),
            )
            for step in self._steps
        ]

    def _trials(self) -> tuple[Trial, ...]:
        """Some of three rules, each with another setting; at times none of those before."""
        chance = self._tries
        return tuple(
            Trial(
                name,
                rule(
                    chance.choice([None, 40 * MS]),
                    hold_ns=chance.choice([None, 20 * MS, 200 * MS]),
                ),
            )
            for name in ("one", "two", "three")
            if chance.random() < 0.7
        )
