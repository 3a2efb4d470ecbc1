"""What a job costs at the speed of the clock: CPU, by process and thread, with latency beside it.

CPU is that of the slots' processes, Ray's threads in them included; driver and Ray's own processes
stand apart. Of each run's results all are compared with the offline query's.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import ray

import slackwater as sw
from benchmarks.engine.before import HOW, ROOT, Child, before_ref, checkout, in_turns, ratios
from benchmarks.engine.cost_run import BARE, IDLE, SLOT, Setting, idle, measured
from benchmarks.engine.running import PLACES
from benchmarks.engine.wakes import cores_of, said_of_wakes
from benchmarks.frame import Claim, Options, Result, Spread, check, counted, number

RATES = (100, 1_000, 10_000, 50_000)
CLAIMED_RATE = 10_000
MOST_CORES = {"one slot": 0.15, "three nodes": 0.35}
MOST_IDLE = 0.01
KEEP_UP = Setting(100_000, "one slot", warm_up_s=5, seconds=60, is_sampled=True)
GROWN = 1.5
"""Less than that is no growth: so far the medians of thirds of a run lie apart that keeps up."""
WORSE = 1.05
TURNS = 8
CHILD = "benchmarks.engine.cost_run"


class BareActor:
    """What Ray alone costs in a process of an actor: it has no work."""

    def ready(self) -> None:
        """Return, once the process is there."""


def run(options: Options) -> Result:
    """Measure every rate, place and source; jobs that wait; 100k/s; and BEFORE, if it is named."""
    settings = _settings(options)
    result = Result(
        f"{settings[0].seconds} s after {settings[0].warm_up_s} s of warm-up, "
        "half buses, half readings",
        [
            "run",
            "cores",
            "busiest slot",
            "CPU s/M events",
            "loops",
            "sources",
            "libzmq",
            "other Python",
            "Ray's",
            "sleeps/event",
            "preempted",
            "p50 ms",
            "p99 ms",
        ],
    )
    with sw.Cluster.local(nodes=3) as cluster:
        waiting = IDLE[:1] if options.quick else IDLE
        for setting in counted(settings, of=len(settings), what="runs"):
            _add(result, setting.name, measured(cluster, setting))
        actor: Any = ray.remote(num_cpus=0)(BareActor)
        bare = actor.remote()
        ray.get(bare.ready.remote())
        # Longer than the 10 s that a slot may hold back an answer, but for a quick look.
        settle_s, seconds = (2.0, 8.0) if options.quick else (5.0, 30.0)
        for kind in waiting:
            for place in PLACES:
                figures = idle(cluster, kind, place, settle_s=settle_s, seconds=seconds)
                _add(result, f"waits: {kind}, {place}", figures)
        del bare
        if not options.quick:
            _add(result, _keep_up_name(), measured(cluster, replace(KEEP_UP, seed=options.seed)))
    _claim(result, settings, waiting)
    ref = before_ref()
    if not options.quick:
        _claim_keeps_up(result)
        if ref is not None:
            _compare(result, options, ref)
    result.notes += [
        "cores: CPU of the slots' processes by the time that passed; each has Ray's threads too",
        "three nodes are simulated on one machine: they share its clock and its cores",
        "a live source's poll sleeps 1 ms at least when nothing is due, so its rows are handed "
        "over up to that much after they were due, from where p50 and p99 count",
        "threads are told apart by the kernel's name for them, which the benchmark's own input and "
        "sink set where they run, and loops by their sharp timers, which only root can see: for "
        "others the loop of a slot with neither of these is under other Python",
        "a replay's CPU holds the reading of the file; a live source's that of the user's poll",
    ]
    if ref is None or options.quick:
        result.notes.append(f"p50 beside another commit's: only in the full run; {HOW}")
    _tell_wakes(result)
    others = _others(result)
    result.notes.append(f"CPU apart from the slots', cores, the most of any run: {others}")
    return result


def _settings(options: Options) -> list[Setting]:
    if options.quick:
        return [
            Setting(CLAIMED_RATE, place, warm_up_s=2, seconds=4, seed=options.seed)
            for place in PLACES
        ]
    made = [
        Setting(rate, place, source, seed=options.seed)
        for rate in RATES
        for place in PLACES
        for source in ("replayed", "live")
    ]
    order = [
        Setting(CLAIMED_RATE, place, source, mode="in order", seed=options.seed)
        for place in PLACES
        for source in ("replayed", "live")
    ]
    return made + order


def _add(result: Result, name: str, figures: dict[str, Any]) -> None:
    result.figures[name] = figures
    threads = figures["threads"]
    result.rows.append(
        [
            name,
            figures["cores"],
            figures["busiest"],
            figures.get("cpu_s_per_million", "–"),
            *(threads.get(one, 0.0) for one in ("loop", "source", "libzmq", "Python, unnamed")),
            threads.get("Ray's own", 0.0),
            figures.get("sleeps_per_event", f"{figures['sleeps_per_s']:.0f}/s"),
            figures.get("preempted_per_event", "–"),
            figures.get("p50_ms", "–"),
            figures.get("p99_ms", "–"),
        ]
    )
    check(not figures.get("missing"), f"{name}: {figures.get('missing')} pairs are missing")
    if figures.get("started_late_s"):
        result.notes.append(f"{name}: its slots began {figures['started_late_s']:.1f} s late")


def _claim(result: Result, settings: Sequence[Setting], waiting: Sequence[str]) -> None:
    for one in settings:
        if one.rate == CLAIMED_RATE and one.mode == "on arrival":
            cores = result.figures[one.name]["cores"]
            bound = MOST_CORES[one.place]
            result.claims.append(Claim(f"{one.name}: cores busy", cores, "<=", bound))
    for kind in waiting:
        for place in PLACES:
            figures = result.figures[f"waits: {kind}, {place}"]
            name = f"a waiting job ({kind}), {place}"
            result.claims += [
                Claim(f"{name}: cores, all slots", figures["cores"], "<=", MOST_IDLE),
                Claim(f"{name}: cores, busiest slot", figures["busiest"], "<=", MOST_IDLE),
            ]


def _claim_keeps_up(result: Result) -> None:
    figures = result.figures[_keep_up_name()]
    waiting = figures["rows_waiting"]
    third = len(waiting) // 3
    first, last = sum(waiting[:third]) / third, sum(waiting[-third:]) / third
    # What is in flight at one look is some rows or a slice's; a growing queue has seconds' worth.
    grown_s = (last - first) / KEEP_UP.rate
    medians = figures["p50_ms_by_thirds"]
    what = f"{KEEP_UP.rate:,}/s, one slot, {KEEP_UP.seconds} s"
    result.claims += [
        Claim(f"{what}: rows in flight, last third − first, s of input", grown_s, "<=", 0.05),
        Claim(
            f"{what}: p50 of the last third / of the first", medians[-1] / medians[0], "<=", GROWN
        ),
    ]


def _compare(result: Result, options: Options, ref: str) -> None:
    """Measure both commits in turns; claim that the latency is no worse."""
    settings = [
        Setting(CLAIMED_RATE, place, warm_up_s=3, seconds=8, seed=options.seed) for place in PLACES
    ]

    def figures(child: Child, tree: Path) -> dict[str, float]:
        found = {}
        for one in settings:
            values = child.ask(asdict(one))
            check(values["code"].startswith(f"{tree}/"), f"{values['code']} ran, not {tree}")
            check(not values["missing"], f"{one.name} in {tree}: pairs are missing")
            for name in ("p50_ms", "p99_ms", "cores"):
                found[f"{one.place}: {name}"] = float(values[name])
        return found

    # Both have a cluster all the while, of which one rests: so turns follow upon each other.
    with (
        checkout(ref) as tree,
        closing(Child(tree, CHILD)) as before,
        closing(Child(ROOT, CHILD)) as now,
    ):
        pairs = in_turns(lambda: figures(before, tree), lambda: figures(now, ROOT), times=TURNS)
    found = ratios(pairs)
    result.figures["beside before"] = {"ref": ref, "ratios": found, "pairs": pairs}
    for place in PLACES:
        result.claims.append(
            Claim(
                f"{place}, {CLAIMED_RATE:,}/s, replayed, on arrival: p50 / that of {ref}, median "
                f"of {TURNS} turns",
                found[f"{place}: p50_ms"].median,
                "<=",
                WORSE,
            )
        )
    said = "; ".join(f"{name} × {spread}" for name, spread in found.items())
    result.notes.append(f"now / {ref}, in {TURNS} turns: {said}")


def _tell_wakes(result: Result) -> None:
    bare_cores = []
    for name, figures in list(result.figures.items()):
        if "by_thread" not in figures:
            continue
        wakes = figures["by_thread"]
        bare_cores.append(cores_of(wakes[BARE]))
        slot = said_of_wakes(wakes[SLOT])
        result.notes.append(f"{name}, cores (sleeps), of the busiest slot {slot}")
        result.notes.append(f"an actor of Ray without work meanwhile {said_of_wakes(wakes[BARE])}")
    result.figures["an actor of Ray without work"] = {"cores": bare_cores}
    result.notes.append(
        f"an actor of Ray without work, beside the waiting jobs: {Spread.of(bare_cores)} of a core"
    )


def _keep_up_name() -> str:
    return f"{KEEP_UP.name}, {KEEP_UP.seconds} s"


def _others(result: Result) -> str:
    most: dict[str, float] = {}
    for figures in result.figures.values():
        for kind, cores in figures.get("others", {}).items():
            most[kind] = max(most.get(kind, 0.0), cores)
    return ", ".join(f"{kind} {number(cores)}" for kind, cores in most.items() if cores >= 0.0005)
