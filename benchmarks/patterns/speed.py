"""Events a second of the pattern operator on a core: Q1 to Q4, longer windows, more keys."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, repeated
from benchmarks.patterns.queries import Asked, query_1, query_2, query_3, query_4
from runtime.model import Batch, GateRead
from runtime.operators import make_operator
from runtime.operators.ground import Operator
from runtime.shedding import Espice

READ = 10_000
"""Rows of a read of the gate."""
TIMES, QUICK_TIMES = 5, 2
LENGTHS, QUICK_LENGTHS = (1_000, 10_000, 100_000), (1_000, 100_000)
TYPES = 100
EVENTS, QUICK_EVENTS = 1_000_000, 300_000
KEYS, MANY_KEYS = 800, 80_000
FLINK = (
    "beside Flink's CEP: not measured, Flink is not here; the claim of at least twice its events a "
    "second stands open"
)


def run(options: Options) -> Result:
    """Time the operator alone: a process, no gate, no network."""
    times = QUICK_TIMES if options.quick else TIMES
    events = QUICK_EVENTS if options.quick else EVENTS
    result = Result(
        f"the operator alone, reads of {READ:,} rows, one process; {times} runs each",
        ["what", "events", "windows or keys", "M events/s", "matches"],
    )
    seed = options.seed
    for asked in (query_1(), query_2(seed), query_3(seed), query_4(seed)):
        _tell(result, asked.name, asked, "as in espice-" + asked.name.lower(), times)
    by_length = {
        length: _tell(
            result,
            f"3 steps, {length:,} events",
            _steps(events, length, seed),
            f"{length:,}",
            times,
        )
        for length in (QUICK_LENGTHS if options.quick else LENGTHS)
    }
    _claim_lengths(result, "3 steps of 100 types", by_length)
    busy = {
        length: _tell(
            result,
            "3 of 4 types",
            _steps(events // 4, length, seed, types=4),
            f"{length:,}",
            times,
        )
        for length in (QUICK_LENGTHS if options.quick else LENGTHS)
    }
    _claim_lengths(result, "3 steps of 4 types", busy)
    rate = max(by_length.values())
    result.claims.append(Claim("sequence of selective steps: events a second", rate, ">=", 1e6))
    few = _tell_keys(result, KEYS, events // 4, seed, times)
    many = _tell_keys(result, MANY_KEYS, events // 4, seed, times)
    what = f"events a second of {MANY_KEYS:,} keys, 99 % idle, by those of {KEYS}"
    result.claims.append(Claim(what, many / few, ">=", 0.8))
    result.notes.append(FLINK)
    return result


def _claim_lengths(result: Result, what: str, rates: dict[int, float]) -> None:
    least, most = min(rates), max(rates)
    name = f"{what}: events a second in windows of {most:,}, by those of {least:,}"
    result.claims.append(Claim(name, rates[most] / rates[least], ">=", 0.8))


def _tell(result: Result, name: str, asked: Asked, scope: str, times: int) -> float:
    """Add a row; return events a second, the median."""
    step, reads = asked.step(), reads_of(asked.rows)
    matches: list[int] = []

    def once() -> float:
        operator = make_operator(step)
        seconds, found = spent(operator, reads)
        matches.append(found)
        return float(asked.rows.num_rows / seconds / 1e6)

    spread = repeated(times, once)
    result.rows.append([name, f"{asked.rows.num_rows:,}", scope, spread, f"{matches[-1]:,}"])
    result.figures[f"{name}, {scope}"] = {"million_events_s": spread, "matches": matches[-1]}
    return float(spread.median) * 1e6


def _steps(events: int, length: int, seed: int, *, types: int = TYPES) -> Asked:
    """Three of some types in sequence, within so many events."""
    rng = np.random.default_rng(seed)
    rows = pa.table({"time": np.arange(events) * 1_000, "kind": rng.integers(0, types, events)})
    return Asked(f"{length}", rows, partial(_three, within=length))


def _three(
    stream: sw.Stream, shed: Espice | None, *, within: int | str, by: Sequence[str] = ()
) -> sw.Stream:
    parts = [sw.event(name, of_type=kind) for kind, name in enumerate(("a", "b", "c"))]
    return stream.pattern(sw.seq(*parts), type="kind", within=within, by=by, shed=shed)


def _tell_keys(result: Result, keys: int, events: int, seed: int, times: int) -> float:
    """Time events over 800 keys where so many are known, all but these idle."""
    rng = np.random.default_rng(seed)
    began = pa.table(
        {"time": np.zeros(keys, np.int64), "kind": np.zeros(keys, np.int64), "key": np.arange(keys)}
    )
    rows = pa.table(
        {
            "time": np.arange(1, events + 1) * 1_000,
            "kind": rng.integers(0, 4, events),
            "key": rng.integers(0, KEYS, events),
        }
    )
    asked = Asked("keys", rows, partial(_three, within="1h", by=("key",)))
    step, first, reads = asked.step(), reads_of(began), reads_of(rows)

    def once() -> float:
        operator = make_operator(step)
        spent(operator, first)
        seconds, _ = spent(operator, reads)
        return events / seconds / 1e6

    spread = repeated(times, once)
    name = f"{keys:,} keys, events of {KEYS}"
    result.rows.append([name, f"{events:,}", f"{keys:,}", spread, ""])
    result.figures[name] = {"million_events_s": spread}
    return float(spread.median) * 1e6


def reads_of(rows: pa.Table) -> list[GateRead]:
    """Return rows as reads of a gate."""
    columns = {name: rows[name].to_numpy() for name in rows.column_names}
    times = columns["time"].astype(np.int64)
    found = []
    for begin in range(0, len(times), READ):
        part = slice(begin, begin + READ)
        batch = Batch(times[part], times[part], {name: one[part] for name, one in columns.items()})
        at_ns = times[part].item(-1)
        found.append(GateRead([batch], [None], at_ns, 0, at_ns))
    return found


def spent(operator: Operator, reads: Sequence[GateRead]) -> tuple[float, int]:
    """Return the CPU time in s, and the matches."""
    began, found = time.process_time(), 0
    for read in reads:
        batch = operator.process(read, 0)
        found += 0 if batch is None else len(batch)
    return time.process_time() - began, found
