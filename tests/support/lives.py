"""A job's life for tests: of three slots in a row, told what its host hears."""

from __future__ import annotations

import pyarrow as pa

import slackwater as sw
from slackwater.runtime.life import (
    Action,
    End,
    FetchResults,
    HomeNode,
    JobLife,
    ResultsFetched,
    SlotEnded,
    Stimulus,
    TimeLimits,
)
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages

SLOTS = ("node-1", "node-2", "node-3")
HOMES = {name: HomeNode(f"id-{name[-1]}", name, f"10.0.0.{name[-1]}") for name in SLOTS}
NODE_IDS = tuple(home.node_id for home in HOMES.values())
S = 1_000_000_000
TIME_LIMITS = TimeLimits()


def own(slot: str, said: str = "step 'halve': it raised") -> SlotEnded:
    return SlotEnded(slot, "failed", said, "OperatorError")


def misses(slot: str, *channels: str) -> SlotEnded:
    said = f"slot {slot!r} lost the other end of channel {channels}"
    return SlotEnded(slot, "failed", said, "WorkerDied", channels)


def done(slot: str) -> SlotEnded:
    return SlotEnded(slot, "done")


def stopped(slot: str) -> SlotEnded:
    return SlotEnded(slot, "stopped")


class Told:
    """A life of `numbers → gate → out`, a slot for each, and how late it is."""

    def __init__(self) -> None:
        flow = sw.Dataflow("chain")
        numbers = sw.table(pa.table({"ts": pa.array([1, 2], pa.timestamp("ns"))}))
        gate = flow.source("numbers", numbers, event_time="ts").merge(name="gate")
        gate.sink("out", sw.collect_sink())
        where = dict(zip(("numbers", "gate", "out"), SLOTS, strict=True))
        self.life = JobLife(place("chain", plan_stages(flow), SLOTS, placement=where), HOMES)
        self.now_ns = 0

    def hears(self, *stimuli: Stimulus, after_s: float = 0.0) -> list[Action]:
        self.now_ns += round(after_s * S)
        return [action for one in stimuli for action in self.life.handle(one, self.now_ns)]

    def fact(self) -> str:
        """Return what happened, without a way out."""
        assert self.life.cause is not None
        return self.life.cause.message

    def said(self) -> str:
        assert self.life.cause is not None
        return self.life.cause.text

    def ends(self, *stimuli: Stimulus) -> End:
        """Hear these, fetch the results, and have ended."""
        (fetch,) = self.hears(*stimuli)
        assert isinstance(fetch, FetchResults)
        (end,) = self.hears(ResultsFetched())
        assert isinstance(end, End)
        assert self.life.is_over
        return end
