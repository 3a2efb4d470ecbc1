"""Processes for `idle_memory`: an actor of Ray without work, and slots of jobs that wait."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import ray

import slackwater as sw
from benchmarks.engine.held import Held, by_mapping, held
from benchmarks.engine.running import PLACES
from benchmarks.frame import check
from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput

__all__ = [
    "EMPTY",
    "OWN",
    "OWN_WITH_PANDAS",
    "REPLAYS",
    "SETTLE_S",
    "Seen",
    "empty_actor",
    "idle_slots",
]

EMPTY = "an actor of Ray without work"
REPLAYS = "a slot: join of two replays"
OWN = "a slot: join of two inputs of the user's own"
OWN_WITH_PANDAS = "the same, and their code names pandas"
FAR_NS = 600 * 10**9
SETTLE_S = 2.0


@dataclass(frozen=True)
class Seen:
    """A process: what it holds, by kind of mapping, and which modules it has."""

    held: Held
    mappings: dict[str, dict[str, float]]
    modules: frozenset[str]
    after_trim: Held


def empty_actor() -> tuple[Seen, Any]:
    """Return what the process of an actor without work is, and the actor, to be kept."""

    # A local class goes by value: one of this module would bring the module, and all of ours.
    class Empty:
        def ready(self) -> None:
            """Return, once the process is there."""

    actor: Any = ray.remote(num_cpus=0)(Empty).remote()
    ray.get(actor.ready.remote())
    time.sleep(SETTLE_S)
    return _seen(actor), actor


def idle_slots(cluster: sw.Cluster) -> dict[str, Seen]:
    """Return {which: its slot}, of jobs one after the other."""
    found = {}
    with _waiting(cluster, "one slot", [_due_far_away()] * 2) as seen:
        found[REPLAYS] = seen["node-1"]
    with _waiting(cluster, "three nodes", [_due_far_away()] * 2) as seen:
        names = ("of three: a replay", "of three: the other", "of three: join and sink")
        found |= dict(zip(names, seen.values(), strict=True))
    with _waiting(cluster, "one slot", [_silent(names_pandas=False)] * 2) as seen:
        found[OWN] = seen["node-1"]
    with _waiting(cluster, "one slot", [_silent(names_pandas=True)] * 2) as seen:
        found[OWN_WITH_PANDAS] = seen["node-1"]
    return found


@contextmanager
def _waiting(cluster: sw.Cluster, place: str, inputs: Sequence[Any]) -> Iterator[dict[str, Seen]]:
    """A job that joins what does not come: {slot: what it is}."""
    flow = sw.Dataflow("waits", slack="0s")
    left, right = (_source(flow, f"in{n}", one) for n, one in enumerate(inputs))
    left.filter(sw.col("n") > 1).join(right, on="key", within="5s").sink("out", sw.collect_sink())
    job = cluster.submit(flow, placement=PLACES[place])
    try:
        time.sleep(SETTLE_S)
        running: Any = job._running  # which has its slots' actors, and shows them to nobody
        actors = running._carrier._actors
        yield {slot: _seen(actors[slot]) for slot in sorted(job.workers())}
        check(job.status == "running", f"a waiting job is {job.status}")
        job.stop()
    finally:
        job.close()


def _source(flow: sw.Dataflow, name: str, rows: Any) -> sw.Stream:
    if isinstance(rows, pa.Table):
        return flow.source(
            name, sw.table(rows), event_time="ts", time_unit="ms", arrival="arrival", speed=1.0
        ).drop("arrival")
    return flow.source(name, rows, event_time="ts", time_unit="ms")


def _due_far_away() -> pa.Table:
    """Return two rows, of which one is due now and one in ten minutes."""
    rows = {"ts": [0, 1], "key": [0, 1], "n": [0, 1]}
    return pa.table(rows | {"arrival": pa.array([0, FAR_NS]).view(pa.timestamp("ns"))})


def _silent(*, names_pandas: bool) -> Any:
    """Return an input of the user's own that has nothing; by value, as one of a script goes."""
    schema = pa.schema([("ts", pa.int64()), ("key", pa.int64()), ("n", pa.int64())])

    class Silent:
        def describe(self) -> str:
            return "silent"

        def schema(self) -> pa.Schema:
            return schema

        def open(self) -> Any:
            return self

        def poll(self) -> EndOfInput | None:
            time.sleep(0.05)
            return None

        def close(self) -> None:
            """Nothing is open."""

    class Naming(Silent):
        def poll(self) -> EndOfInput | None:
            found = super().poll()
            return END_OF_INPUT if hasattr(found, "to_pandas") else None

    return Naming() if names_pandas else Silent()


def _seen(actor: Any) -> Seen:
    """Return what an actor's process is now, and what malloc can give back of it."""

    # By value, as above. What Ray loads for its first answer is there at the second.
    def pid_of(_: object) -> int:
        return os.getpid()

    def modules_of(_: object) -> list[str]:
        return list(sys.modules)

    def trimmed(_: object) -> None:
        import ctypes  # noqa: PLC0415 it runs there
        import gc  # noqa: PLC0415

        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)

    pid = ray.get(actor.__ray_call__.remote(pid_of))
    modules = ray.get(actor.__ray_call__.remote(modules_of))
    now, mappings = held(pid), by_mapping(pid)
    ray.get(actor.__ray_call__.remote(trimmed))
    return Seen(now, mappings, frozenset(modules), held(pid))
