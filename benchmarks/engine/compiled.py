"""What a compiled kernel would bring, measured before anybody writes one.

```
ours, in Python   ──┐
C, looks as ours    │   the same rows, filters, join and results, at the speed of the clock,
C, for each row     ├─▶ in turns within one run: CPU, sleeps, p50 and p99
C that only sleeps ─┘
```

`compiled.c` is a floor and no kernel: one flow, without a ledger, snapshots, samples or credit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.engine.compiled_parts import COMPILED, awake_ms, left_without, parts_of
from benchmarks.engine.compiled_run import Flow, Measured, compiled, flow_of, in_c, ours
from benchmarks.frame import Claim, Options, Result, Spread, check, number
from slackwater.runtime.config import Limits

__all__ = ["Turns", "claims_of", "run"]

CLAIMED_RATE = 10_000
RATES = (1_000, CLAIMED_RATE)
GAP_NS = Limits().source_gap_ns
MOST_CORES, MOST_P50_MS = 0.15, 0.2
OURS = "ours"
C, C_EACH = "C, looks as ours", "C, woken for each row"
BARE, BARE_EACH = "C, only sleeps, as often", "C, only sleeps, for each row"
WORKING = (OURS, C, C_EACH)


@dataclass
class Turns:
    """What one way did at one rate, an entry for each turn."""

    cores: list[float] = field(default_factory=list)
    sleeps_per_s: list[float] = field(default_factory=list)
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    results: list[int] = field(default_factory=list)

    def add(self, one: Measured, *, works: bool) -> None:
        """Add a turn."""
        self.cores.append(one.cores)
        self.sleeps_per_s.append(one.sleeps_per_s)
        self.results.append(one.results)
        if works:
            self.p50_ms.append(one.quantile_ms(0.5))
            self.p99_ms.append(one.quantile_ms(0.99))

    @property
    def us_each(self) -> float:
        """CPU for each sleep, of what does nothing else; the median, in microseconds."""
        pairs = zip(self.cores, self.sleeps_per_s, strict=True)
        return Spread.of([cores / sleeps * 1e6 for cores, sleeps in pairs]).median


def run(options: Options) -> Result:
    """Measure each rate in turns, then the parts of our slot; `quick` has one rate, shorter."""
    warm_up_s, seconds, turns = (1, 3, 2) if options.quick else (4, 8, 3)
    rates = (CLAIMED_RATE,) if options.quick else RATES
    result = Result(
        f"{turns} turns of {seconds} s after {warm_up_s} s of warm-up, half buses, half readings, "
        f"replayed, on arrival, in one slot in a process of its own, without Ray; cc -O3; looks "
        f"{GAP_NS // 1_000} µs apart",
        ["events/s", "what", "cores", "sleeps/s", "CPU µs/event", "p50 ms", "p99 ms"],
    )
    with compiled() as program:
        for rate in rates:
            with tempfile.TemporaryDirectory() as folder:
                flow = flow_of(
                    Path(folder),
                    rate=rate,
                    warm_up_s=warm_up_s,
                    seconds=seconds,
                    seed=options.seed,
                )
                found = _turns(program, flow, turns, is_quick=options.quick)
                timed = ours(flow, "parts")
            _report(result, rate, found)
            _say_parts(result, rate, found, timed)
            if rate == CLAIMED_RATE:
                result.claims += claims_of(found, rate)
    result.notes += [
        "compiled.c is a floor: it knows this one flow, and has no ledger, snapshots, samples, "
        "credit or channels, which a kernel must have",
        "the results of each run were compared with the offline query's, all of them; C's are as "
        "many as ours",
        "latency: from when the later row was due until the result was stamped; CPU: of the whole "
        "process, as the kernel counts it, in the window",
        "what only sleeps wakes when the C program does, and passes over the rows",
        "est.: parts of ours, and ours without some of them, are estimates by subtraction, as if "
        "compiled code and the call of it took no time; sleeps/s of a part are its calls, its p50 "
        "what a result waits for it on average",
    ]
    return result


def _turns(program: Path, flow: Flow, turns: int, *, is_quick: bool) -> dict[str, Turns]:
    """Run each way once a turn; a quick look has what only sleeps as often as C, once."""
    ways: dict[str, Callable[[], Measured]] = {
        OURS: lambda: ours(flow),
        C: lambda: in_c(program, flow, gap_ns=GAP_NS),
        C_EACH: lambda: in_c(program, flow, gap_ns=0),
        BARE: lambda: in_c(program, flow, gap_ns=GAP_NS, works=False),
        BARE_EACH: lambda: in_c(program, flow, gap_ns=0, works=False),
    }
    found: dict[str, Turns] = {}
    for turn in range(turns):
        for name, measure in ways.items():
            if is_quick and (name == BARE_EACH or (name == BARE and turn)):
                continue
            found.setdefault(name, Turns()).add(measure(), works=name in WORKING)
    counts = {count for name in WORKING for count in found[name].results}
    check(len(counts) == 1, f"ours and C do not have as many results: {sorted(counts)}")
    return found


def claims_of(found: dict[str, Turns], rate: int) -> list[Claim]:
    """Return both targets for each way, and whether they are kept at once."""
    claims = []
    kept: dict[str, float] = {}
    for name in WORKING:
        cores, p50_ms = (Spread.of(v).median for v in (found[name].cores, found[name].p50_ms))
        kept[name] = max(cores / MOST_CORES, p50_ms / MOST_P50_MS)
        where = f"{rate:,}/s, {name}"
        claims += [
            Claim(f"{where}: cores", cores, "<=", MOST_CORES),
            Claim(f"{where}: p50 ms", p50_ms, "<=", MOST_P50_MS),
        ]
    at_once = f"{MOST_CORES} of a core and p50 <= {MOST_P50_MS} ms at once"
    in_c_at_best = min(kept[C], kept[C_EACH])
    what = "the greater of both by its target"
    claims += [
        Claim(f"{at_once}, in C ({what}, of the better way)", in_c_at_best, "<=", 1.0),
        Claim(f"{at_once}, ours ({what})", kept[OURS], "<=", 1.0),
    ]
    return claims


def _report(result: Result, rate: int, found: dict[str, Turns]) -> None:
    for name, one in found.items():
        cores = Spread.of(one.cores)
        latencies: Sequence[object] = ["–", "–"]
        if one.p50_ms:
            latencies = [Spread.of(one.p50_ms), number(Spread.of(one.p99_ms).median)]
        sleeps = number(Spread.of(one.sleeps_per_s).median)
        result.rows.append(
            [f"{rate:,}", name, cores, sleeps, cores.median / rate * 1e6, *latencies]
        )
        result.figures[f"{rate:,}/s, {name}"] = asdict(one)
    for name in (C, C_EACH):
        ratio = Spread.of(
            [a / b for a, b in zip(found[OURS].cores, found[name].cores, strict=True)]
        )
        result.figures[f"{rate:,}/s, CPU, ours / {name}"] = ratio
        result.notes.append(f"{rate:,}/s, CPU, ours / {name}, by turn: {ratio}")


def _say_parts(result: Result, rate: int, found: dict[str, Turns], timed: Measured) -> None:
    """Say what our slot's parts take, and what would be left with some of them compiled."""
    cores, p50_ms = (Spread.of(v).median for v in (found[OURS].cores, found[OURS].p50_ms))
    sleeping = found[BARE].us_each / 1e6 * Spread.of(found[OURS].sleeps_per_s).median
    parts = parts_of(timed, cores=cores, sleeping=sleeping)
    for name, part in parts.items():
        calls = number(part.calls_per_s) if part.calls_per_s else "–"
        _add_estimate(result, rate, f"of ours: {name}", part.cores, part.in_latency_ms, calls=calls)
    for what, names in COMPILED.items():
        left = left_without(parts, names, p50_ms=p50_ms)
        _add_estimate(result, rate, f"ours without: {what}", left["cores"], left["p50_ms"])
        result.figures[f"{rate:,}/s, ours without: {what}, estimated"] = left
    result.figures[f"{rate:,}/s, parts of ours, estimated"] = {
        name: asdict(part) for name, part in parts.items()
    }
    result.figures[f"{rate:,}/s, ours, from waking to the user's function, ms"] = awake_ms(timed)
    result.notes.append(
        f"{rate:,}/s: a sleep takes {found[BARE].us_each:.1f} µs of CPU; of ours it is "
        f"{awake_ms(timed):.2f} ms, on average, from when the loop wakes until the user's function "
        "has the rows"
    )


def _add_estimate(
    result: Result, rate: int, what: str, cores: float, ms: float, *, calls: str = "–"
) -> None:
    cells = [cores, calls, cores / rate * 1e6, ms or "–", "–"]
    result.rows.append([f"{rate:,}", f"{what} (est.)", *cells])
