"""What comes to a gate and when: the sources alone, in virtual time, without what is behind them.

Nothing that a policy sets reaches a source (as long as there is credit), so this is the same in
every run over the same streams: a search for slacks need not simulate it again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import Message
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.schedule import Grant, Send, Slot
from slackwater.runtime.simulate import CostModel, LinkModel


@dataclass(frozen=True)
class Arrived:
    """A message at a gate: when it came, and from which of the gate's inputs."""

    came_ns: int
    writer: int
    message: Message


@dataclass(frozen=True)
class Arrivals:
    """All messages of a run, in the order of their coming, and the sources' samples."""

    messages: Sequence[Arrived]
    samples: Sequence[StageSample]


class NotAloneError(Exception):
    """The gate is fed by more than sources in slots of their own: it is not to be seen apart."""


def arrivals(plan: Plan, gate: str, *, cost: CostModel, link: LinkModel, seconds: int) -> Arrivals:
    """Return what comes to a gate that is fed by sources alone.

    Args:
        plan: of the flow.
        gate: the stage.
        cost: as in the simulator, but without jitter, which is drawn for all slots together.
        link: likewise.
        seconds: how many the samples are wanted of.

    Raises:
        NotAloneError: another stage feeds it, or shares a slot with a source.
    """
    inputs = next(stage for stage in plan.stages if stage.name == gate).inputs
    writers = {channel.name: writer for writer, channel in enumerate(inputs)}
    slots = {plan.slots[channel.source] for channel in inputs}
    stages = [stage for slot in slots for stage in plan.stages_of(slot)]
    others = [stage.name for stage in stages if stage.kind != "source"]
    channels = {channel.name for stage in stages for channel in stage.outputs}
    if others or channels != set(writers) or cost.jitter or link.jitter_ns:
        raise NotAloneError(
            f"gate {gate!r}: its inputs are {sorted(writers)}, its sources' slots also hold "
            f"{others} and feed {sorted(channels - set(writers))}; only a gate behind sources in "
            "slots of their own, under costs without jitter, can be seen apart: simulate"
        )
    messages: list[Arrived] = []
    samples: list[StageSample] = []
    for name in sorted(slots):
        slot = Slot(name, plan.stages_of(name), start_ns=0, limits=plan.limits, is_sampled=True)
        found = _messages(slot, writers, cost=cost, link=link, samples=samples)
        messages += found
        slot.close()
    samples = [sample for sample in samples if sample.second < seconds]
    return Arrivals(sorted(messages, key=lambda one: (one.came_ns, one.writer)), samples)


def _messages(
    slot: Slot,
    writers: dict[str, int],
    *,
    cost: CostModel,
    link: LinkModel,
    samples: list[StageSample],
) -> list[Arrived]:
    """Run a slot to its end; return what it sent, and add its samples to those of others."""
    rng = np.random.default_rng(0)  # of costs and links without jitter: nothing depends on it
    now_ns, found = 0, []
    while not slot.is_finished:
        done = slot.step(now_ns)
        if done is None:
            wake_ns = slot.rest(now_ns).until_ns
            assert wake_ns is not None, "a paced source says when"
            assert wake_ns > now_ns, "what is due could have been done"
            now_ns = wake_ns
            continue
        took_ns = cost.slice_ns(done, rng, now_ns=now_ns)
        slot.charge(done, took_ns)
        now_ns += took_ns
        samples += slot.samples(now_ns)
        for action in done.actions:
            if isinstance(action, Send):
                came_ns = now_ns + link.travel_ns(rng)
                found.append(Arrived(came_ns, writers[action.channel.name], action.message))
                slot.credit(action.channel.name, action.message.rows)
            assert not isinstance(action, Grant), "nothing sends to a source"
    return found
