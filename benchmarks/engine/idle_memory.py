"""What an idle slot's memory is: Python, import by import, Ray's worker apart, what a slot opens.

```
Python ─▶ + Ray's package, NumPy, Arrow ─▶ + Ray's core worker ─▶ + ZeroMQ, ours ─▶ + opened
└────── imports.py, step by step ──────┘   └ an empty actor's ┘                    └ a job's slot ┘
```

All of it in one run on one cluster, so that what processes share is shared throughout.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import slackwater as sw
from benchmarks.engine.before import ROOT
from benchmarks.engine.held import Held
from benchmarks.engine.idle_slots import (
    EMPTY,
    OWN_WITH_PANDAS,
    REPLAYS,
    SETTLE_S,
    Seen,
    empty_actor,
    idle_slots,
)
from benchmarks.frame import Options, Result, check

PROGRAM = Path(__file__).with_name("imports.py")
PYTHON = "Python"
RAY: Mapping[str, Sequence[str]] = {
    "asyncio, for Ray": ("asyncio",),
    "requests, for Ray": ("requests",),
    "yaml, jsonschema, protobuf, for Ray": ("yaml", "jsonschema", "google.protobuf.descriptor_pb2"),
    "Ray's package": ("ray", "ray._private.node", "ray._common.usage.usage_lib"),
    "NumPy": ("numpy",),
    "Arrow": ("pyarrow",),
    "Ray's serializers, with pydantic": (
        "ray._common.pydantic_compat",
        "ray._private.arrow_serialization",
        "ray.util.serialization_addons",
        "pyarrow.json",
    ),
}
"""What each actor of Ray imports: Ray itself brings NumPy and Arrow, at its first value."""
OURS: Mapping[str, Sequence[str]] = {
    "ZeroMQ": ("zmq",),
    "ours: model, plan, expressions, order": (
        "slackwater.runtime.model",
        "slackwater.runtime.plan.slot_plan",
    ),
    "ours: operators, patterns, shedding, closing": ("slackwater.runtime.operators",),
    "ours: schedule, gates, measure": ("slackwater.runtime.schedule",),
    "ours: wire, sinks, the slot": (
        "slackwater.actors.slot.actor",
        "slackwater.actors.jobs.end_on_record",
    ),
    "ours: inputs": ("slackwater.ingest",),
}
"""What each slot imports besides."""
SOME: Mapping[str, Sequence[str]] = {
    "Arrow's functions": ("pyarrow.compute",),
    "pandas, as Arrow loads it": ("pandas", "pyarrow.pandas_compat"),
}
"""What slots have that run users' code; the second, if that names it."""
NOT_THERE = ("pyarrow.parquet", "pyarrow.dataset", "scipy.optimize", "sklearn.svm", "pyspark.sql")
"""What the package has a use for, elsewhere than in these slots."""
ARENAS = "MALLOC_ARENA_MAX"


@dataclass(frozen=True)
class Step:
    """An import of `imports.py`: what the process holds, and how many modules it has behind it."""

    name: str
    held: Held
    modules: int


def run(options: Options) -> Result:
    """Measure imports, an empty actor, and slots whose jobs wait; `quick` leaves arenas out."""
    result = Result(
        "imports one after the other in one process; an actor of Ray without work; slots of "
        f"waiting jobs, {SETTLE_S:g} s after the start; one cluster of three local nodes",
        ["what", "RSS MB", "own MB", "PSS MB", "adds RSS", "adds own", "modules", "threads"],
    )
    with sw.Cluster.local(nodes=3) as cluster:
        empty, actor = empty_actor()  # it stays: so Ray's pages are shared, as on any node
        steps, imported = _imports({**RAY, **OURS, **SOME})
        slots = idle_slots(cluster)
        alone = {name: _imports({name: (name,)})[0][1] for name in NOT_THERE}
        del actor
    _tabulate(result, steps, empty, slots)
    _say_made_of(result, steps, empty, slots)
    _say_the_rest(result, empty, slots)
    loaded = frozenset[str]().union(*(seen.modules for seen in slots.values()))
    check(not loaded & set(NOT_THERE), f"slots have {sorted(loaded & set(NOT_THERE))}")
    _say_not_stepped(result, loaded - imported)
    said = ", ".join(f"{name} {one.held.own_mb:.0f}" for name, one in alone.items())
    result.notes.append(f"in none of these slots; each in a bare interpreter, own MB: {said}")
    result.figures["alone"] = {name: asdict(one.held) for name, one in alone.items()}
    if not options.quick:
        _compare_arenas(result, slots)
    return result


def _imports(groups: Mapping[str, Sequence[str]]) -> tuple[list[Step], frozenset[str]]:
    """Return a step for Python as it is, and one behind each group; and all modules at the end."""
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-P", str(PROGRAM), *(",".join(names) for names in groups.values())],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    found = []
    *lines, modules_at_end = done.stdout.splitlines()
    for name, line in zip((PYTHON, *groups), lines, strict=True):
        rss, own, pss, modules = line.split()
        found.append(Step(name, Held(float(rss), float(own), float(pss)), int(modules)))
    return found, frozenset(modules_at_end.split())


def _tabulate(
    result: Result, steps: Sequence[Step], empty: Seen, slots: Mapping[str, Seen]
) -> None:
    before = Held(0, 0, 0)
    for number, step in enumerate(steps):
        _add(result, f"+ {step.name}" if number else step.name, step.held, before, step.modules)
        before = step.held
    upto = steps[len(RAY)].held
    _add(result, EMPTY, empty.held, upto, len(empty.modules))
    for name, seen in slots.items():
        _add(result, name, seen.held, empty.held, len(seen.modules))
        result.figures[name]["by mapping"] = seen.mappings
        result.figures[name]["after malloc_trim"] = asdict(seen.after_trim)
    result.figures[EMPTY]["by mapping"] = empty.mappings


def _add(result: Result, name: str, now: Held, before: Held, modules: int) -> None:
    more = now - before
    result.rows.append(
        [
            name,
            *(round(mb, 1) for mb in (now.rss_mb, now.own_mb, now.pss_mb)),
            f"{more.rss_mb:+.1f}",
            f"{more.own_mb:+.1f}",
            modules,
            now.threads or "–",
        ]
    )
    result.figures[name] = {**asdict(now), "adds": asdict(more), "modules": modules}


def _say_made_of(
    result: Result, steps: Sequence[Step], empty: Seen, slots: Mapping[str, Seen]
) -> None:
    """Say of slots what they are made of: imports, Ray's core worker, what they have opened."""
    adds = {now.name: now.held - before.held for before, now in pairwise(steps)}
    core = empty.held - steps[len(RAY)].held
    for name, with_users in ((REPLAYS, False), (OWN_WITH_PANDAS, True)):
        parts = {PYTHON: steps[0].held}
        parts |= {one: adds[one] for one in RAY} | {"Ray's core worker": core}
        parts |= {one: adds[one] for one in (*OURS, *(SOME if with_users else ()))}
        rest = slots[name].held
        for part in parts.values():
            rest = rest - part
        parts["what it has opened"] = rest
        result.figures[f"made of: {name}"] = {one: asdict(part) for one, part in parts.items()}
        said = ", ".join(f"{one} {part.own_mb:.1f}" for one, part in parts.items())
        result.notes.append(f"{name}, own MB: {said}")


def _say_the_rest(result: Result, empty: Seen, slots: Mapping[str, Seen]) -> None:
    for name, seen in ((EMPTY, empty), (REPLAYS, slots[REPLAYS])):
        said = ", ".join(
            f"{kind} {one['own_mb']:.1f} of {one['rss_mb']:.1f}"
            for kind, one in sorted(seen.mappings.items(), key=lambda item: -item[1]["own_mb"])
        )
        result.notes.append(f"{name}, by mapping, own MB of RSS: {said}")
    gains = [seen.held.own_mb - seen.after_trim.own_mb for seen in slots.values()]
    result.notes += [
        f"gc.collect and malloc_trim give back {min(gains):.1f} to {max(gains):.1f} MB of a slot",
        "own: pages that it has written to, which no other process can share; where it has a "
        "library of its own, with nobody else on the host, RSS says what that takes",
        "three nodes are simulated on one machine",
    ]


def _say_not_stepped(result: Result, modules: frozenset[str]) -> None:
    """Say which packages slots have that no step imports: they are in what is opened, or Ray's."""
    packages = Counter(name.partition(".")[0] for name in modules)
    result.figures["modules that no step imports"] = sorted(modules)
    said = ", ".join(f"{package} {count}" for package, count in packages.most_common(8))
    result.notes.append(f"modules of slots that no step imports: {len(modules)} ({said}, …)")


def _compare_arenas(result: Result, slots: Mapping[str, Seen]) -> None:
    """Say what one arena of malloc for all threads would bring: another cluster, all of it so."""
    os.environ[ARENAS] = "1"
    try:
        with sw.Cluster.local(nodes=3) as cluster:
            fewer = idle_slots(cluster)
    finally:
        del os.environ[ARENAS]
    gains = {name: slots[name].held.own_mb - fewer[name].held.own_mb for name in slots}
    result.figures[f"less with {ARENAS}=1, own MB"] = gains
    low, high = min(gains.values()), max(gains.values())
    result.notes.append(f"with {ARENAS}=1 in all processes slots have {low:.1f} to {high:.1f} less")
