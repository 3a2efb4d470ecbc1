"""Operators after gates, as the estimate needs them; read from a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from slackwater.runtime.model import NS_PER_SECOND, READY_ONLY, ReleaseRule
from slackwater.runtime.plan.plan import Stage

__all__ = ["GatedOperator", "gated_operators"]

Makes = Literal["rows", "pairs", "windows", "on its time"]


@dataclass(frozen=True, kw_only=True)
class GatedOperator:
    """Operator, or shared gate, whose rows pass a gate.

    Attributes:
        name: name of the stage.
        feeds: (feeding stage, port) of each channel; of a replica, of the gate that it shares.
        rule: the release rule of its gate.
        makes: kind of its results.
        within_s: longest distance of a pair in event time.
        delay_s: how long results wait for older rows without a partner, in event time.
        result_delay_s: event time from the newest row of a result to its own, where results leave
            on their time; infinite: they leave at the end.
        slide_s, from_s: time from one window to the next, and the last moment in one of them.
        origin: the step's name, as the user wrote it.
        is_tuned: whether its rule follows from the deadline.
        gate: the stage that is a replica's gate; None if it has its own.
        comes_by: the feeder of a replica: its gate, or the link from there.
    """

    name: str
    feeds: tuple[tuple[str, int], ...]
    rule: ReleaseRule = READY_ONLY
    makes: Makes = "rows"
    within_s: float = 0.0
    delay_s: float = 0.0
    result_delay_s: float = 0.0
    slide_s: float = 0.0
    from_s: float = 0.0
    origin: str = ""
    is_tuned: bool = False
    gate: str | None = None
    comes_by: str | None = None


def gated_operators(stages: Sequence[Stage], *, origin_ns: int = 0) -> dict[str, GatedOperator]:
    """Return {stage: its gated operator}, of all stages after a gate, replicas included.

    Args:
        stages: stages of a plan.
        origin_ns: the event time that counts as 0.
    """
    gated: dict[str, GatedOperator] = {}
    for stage in stages:
        step = stage.step
        traits = step.traits
        if not traits.has_gate:
            continue
        summary, due_ns = traits.summaries[0], traits.result_delay_ns
        shared = gated[stage.inputs[0].source] if stage.shares_gate else None
        feeds = tuple((channel.source, channel.port) for channel in stage.inputs)
        gated[stage.name] = GatedOperator(
            name=stage.name,
            feeds=feeds if shared is None else shared.feeds,
            rule=stage.rule,
            makes=traits.makes,
            within_s=traits.reach_ns / NS_PER_SECOND if traits.makes == "pairs" else 0.0,
            # Results that leave at the end wait for no row but the last.
            delay_s=0.0 if due_ns is None else summary.delay_ns / NS_PER_SECOND,
            result_delay_s=inf if due_ns is None else due_ns / NS_PER_SECOND,
            slide_s=summary.every_ns / NS_PER_SECOND,
            from_s=(summary.from_ns - origin_ns) % max(summary.every_ns, 1) / NS_PER_SECOND,
            origin=stage.subject.step,
            is_tuned=stage.is_tuned,
            gate=None if shared is None else shared.name,
            comes_by=None if shared is None else shared.name,
        )
    return gated
