"""Events a second of the pattern operator on a core: Q1 to Q4, longer windows, more keys.

Beside it Flink's CEP on the same questions, where it is installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.flink import NoFlink
from benchmarks.frame import Claim, Options, Result, check, repeated
from benchmarks.patterns.growth import (
    FLINK,
    OURS,
    Growth,
    of_types,
    tell_feed,
    tell_flink,
    tell_ours,
    with_rare_end,
)
from benchmarks.patterns.on_flink import FlinkCep, Passes, flink_cep
from benchmarks.patterns.queries import Asked, query_1, query_2, query_3, query_4
from benchmarks.patterns.timed import READ, Found, million_a_second, reads_of, spent, tell
from benchmarks.picture import Picture
from slackwater.runtime.registry.operators import make_operator

TYPES, BUSY_TYPES = 100, 4
KEYS, MANY_KEYS = 800, 80_000
COLOURS = {OURS: "tab:blue", FLINK: "tab:red"}
TITLES = {"first": "the first match, events used up", "next": "each with the next of its kind"}


@dataclass(frozen=True)
class Size:
    """How much is run.

    Attributes:
        times: of the operator, each.
        events: of generated streams; a quarter of that where most of them fit.
        lengths: of windows.
        queries: how Flink runs Q1 to Q4.
        growth: how it runs longer windows; None: not at all.
    """

    times: int
    events: int
    lengths: tuple[int, ...]
    queries: Passes
    growth: Passes | None


WHOLE = Size(5, 1_000_000, (1_000, 10_000, 100_000), Passes(20, 5, 20), Passes(10, 1, 30))
QUICK = Size(2, 160_000, (1_000, 100_000), Passes(1, 1, 1.5), None)


def run(options: Options) -> Result:
    """Time the operator alone: a process, no gate, no network; and the others."""
    size, seed = QUICK if options.quick else WHOLE, options.seed
    result = Result(
        f"the operator alone, reads of {READ:,} rows, one process; {size.times} runs each; million "
        "events a second of CPU time",
        ["what", "who", "events", "M events/s", "matches"],
    )
    with ExitStack() as stack:
        flink = None
        try:
            flink = stack.enter_context(flink_cep())
            result.figures["flink"] = flink.version
        except NoFlink as problem:
            result.notes.append(f"beside Flink's CEP: not measured: {problem}")
        asked = (query_1(), query_2(seed), query_3(seed), query_4(seed))
        queries = {one.name: _tell_query(result, one, flink, size) for one in asked}
        growths = [
            of_types(f"3 of {TYPES} types", size.events, TYPES, seed=seed),
            of_types(f"3 of {BUSY_TYPES} types", size.events // 4, BUSY_TYPES, seed=seed),
            with_rare_end("3 steps, the last rare", size.events, seed=seed),
        ]
        for growth in growths:
            _tell_growth(result, growth, flink, size)
    _claim(result, growths[0], growths[1])
    few = _tell_keys(result, KEYS, size, seed)
    many = _tell_keys(result, MANY_KEYS, size, seed)
    what = f"events a second of {MANY_KEYS:,} keys, 99 % idle, by those of {KEYS}"
    result.claims.append(Claim(what, many / few, ">=", 0.8))
    result.notes.append(f"drawn: {draw(growths, queries)}")
    return result


def _tell_query(
    result: Result, asked: Asked, flink: FlinkCep | None, size: Size
) -> dict[str, float]:
    """Return {who: million events a second}; claim that ours is at least twice Flink's."""
    rate, matches = million_a_second(asked, size.times)
    tell(result, asked.name, OURS, Found(asked.rows.num_rows, rate, matches))
    rates, times = {OURS: rate.median}, None
    if flink is not None:
        assert asked.plain is not None
        took = flink.run(asked.plain, size.queries)
        tell(result, asked.name, FLINK, Found(took.events, took.rate, took.windows))
        same, found = rate, matches
        if took.events < asked.rows.num_rows:
            part = replace(asked, rows=asked.rows.slice(0, took.events))
            same, found = million_a_second(part, size.times)
            tell(
                result, f"{asked.name}, as far as Flink came", OURS, Found(took.events, same, found)
            )
        problem = f"{asked.name}: Flink's CEP finds a match in {took.windows} windows, ours {found}"
        check(took.windows == found, problem)
        rates[FLINK] = took.rate.median
        times = same.median / took.rate.most
    what = f"{asked.name}: events a second, by those of Flink's CEP in its best pass"
    result.claims.append(Claim(what, times, ">=", 2.0))
    return rates


def _tell_growth(result: Result, growth: Growth, flink: FlinkCep | None, size: Size) -> None:
    for length in size.lengths:
        tell_ours(result, growth, length, size.times)
    if flink is not None and growth.rule == "next":  # it has no rule like the other one
        if size.growth is None:
            result.notes.append(f"{growth.name}: Flink's CEP is left out of --quick")
            return
        for length in size.lengths:
            tell_flink(result, growth, length, flink, size.growth)
        tell_feed(result, growth, flink, size.queries)


def _claim(result: Result, selective: Growth, busy: Growth) -> None:
    for growth in (selective, busy):
        rates = growth.rates[OURS]
        least, most = min(rates), max(rates)
        name = f"{growth.name}: events a second in windows of {most:,}, by those of {least:,}"
        result.claims.append(Claim(name, rates[most] / rates[least], ">=", 0.8))
    rate = 1e6 * min(selective.rates[OURS].values())
    result.claims.append(Claim("sequence of selective steps: events a second", rate, ">=", 1e6))


def _tell_keys(result: Result, keys: int, size: Size, seed: int) -> float:
    """Time events over 800 keys where so many are known, all but these idle."""
    events = size.events // 4
    rng = np.random.default_rng(seed)
    began = pa.table(
        {"time": np.zeros(keys, np.int64), "kind": np.zeros(keys, np.int64), "key": np.arange(keys)}
    )
    rows = pa.table(
        {
            "time": np.arange(1, events + 1) * 1_000,
            "kind": rng.integers(0, BUSY_TYPES, events),
            "key": rng.integers(0, KEYS, events),
        }
    )
    step, first, reads = Asked("keys", rows, _by_key).step(), reads_of(began), reads_of(rows)

    def once() -> float:
        operator = make_operator(step)
        spent(operator, first)
        seconds, _ = spent(operator, reads)
        return events / seconds / 1e6

    rate = repeated(size.times, once)
    tell(result, f"{keys:,} keys, events of {KEYS}", OURS, Found(events, rate, None))
    return rate.median


def _by_key(stream: sw.Stream, shed: sw.shedding.EventShedding | None) -> sw.Stream:
    pattern = sw.patterns.seq(
        *(sw.patterns.event(name, of_type=kind) for kind, name in enumerate("abc"))
    )
    return stream.pattern(pattern, type="kind", within="1h", by=("key",), shed=shed)


def draw(growths: Sequence[Growth], queries: Mapping[str, Mapping[str, float]]) -> Path:
    """Draw a panel for each sequence, and one for the queries; return the path of the picture.

    Args:
        growths: growth of each sequence, as measured.
        queries: {name: {who: million events a second}}.
    """
    title = "events a second of a core, by CPU time; others as far as they came in time"
    picture = Picture(f"pattern-speed: {title}", (11.0, 7.4), rows=2, columns=2, sharey=True)
    for panel, growth in zip(picture.panels, growths, strict=False):
        for who, rates in growth.rates.items():
            events = [1e6 * rate for rate in rates.values()]
            panel.plot(list(rates), events, marker="o", color=COLOURS[who], label=who)
        panel.set(title=f"{growth.name}: {TITLES[growth.rule]}", xlabel="window, events")
        panel.set(xscale="log", yscale="log", ylabel="events/s")
    last = picture.panels[len(growths)]
    people = [who for who in COLOURS if any(who in rates for rates in queries.values())]
    for number, who in enumerate(people):
        places = np.arange(len(queries)) + 0.4 * (number - (len(people) - 1) / 2)
        heights = [1e6 * rates.get(who, 0.0) for rates in queries.values()]
        last.bar(places, heights, width=0.36, color=COLOURS[who], label=who)
    last.set_xticks(range(len(queries)), list(queries))
    last.set(title="the queries of [espice] on real data", yscale="log", ylabel="events/s")
    return picture.save("pattern-speed")
