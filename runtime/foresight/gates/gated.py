"""What the estimate must know of an operator behind a gate; read from a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from slackwater.runtime.model import NS_PER_SECOND, READY_ONLY, ReleaseRule
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.step import GatedStep

__all__ = ["GatedOperator", "gated_operators"]

Makes = Literal["rows", "pairs", "windows", "on its time"]


@dataclass(frozen=True, kw_only=True)
class GatedOperator:
    """An operator, or a shared gate, whose rows come through a gate.

    Attributes:
        name: of the stage.
        feeds: (the stage that feeds it, at which port), one for each channel.
        rule: when its gate lets rows go.
        makes: what it makes of them.
        within_s: of pairs: how far apart in event time.
        slide_s, from_s: of windows: from one to the next, and the last moment in one of them.
        origin: the step's name, as the user wrote it.
        is_tuned: its rule follows from the deadline.
        gate: a replica's: the stage that is its gate; None: it has one of its own.
        comes_by: what rows come to a replica by: its gate, or what crosses the link from there.
    """

    name: str
    feeds: tuple[tuple[str, int], ...]
    rule: ReleaseRule = READY_ONLY
    makes: Makes = "rows"
    within_s: float = 0.0
    slide_s: float = 0.0
    from_s: float = 0.0
    origin: str = ""
    is_tuned: bool = False
    gate: str | None = None
    comes_by: str | None = None


def gated_operators(stages: Sequence[Stage], *, origin_ns: int = 0) -> dict[str, GatedOperator]:
    """Return {stage: what is to be known of it}, of all behind a gate, replicas included.

    Args:
        stages: of a plan.
        origin_ns: the event time that counts as 0.
    """
    found = {}
    for stage in stages:
        step = stage.step
        if not isinstance(step, GatedStep):
            continue
        traits = step.traits
        summary = traits.summaries[0]
        found[stage.name] = GatedOperator(
            name=stage.name,
            feeds=tuple((channel.source, channel.port) for channel in stage.inputs),
            rule=stage.rule,
            makes=traits.makes,
            within_s=traits.reach_ns / NS_PER_SECOND if traits.makes == "pairs" else 0.0,
            slide_s=summary.every_ns / NS_PER_SECOND,
            from_s=(summary.from_ns - origin_ns) % max(summary.every_ns, 1) / NS_PER_SECOND,
            origin=stage.origin,
            is_tuned=stage.is_tuned,
            gate=stage.inputs[0].source if stage.replica is not None else None,
            comes_by=stage.inputs[0].source if stage.replica is not None else None,
        )
    return found
