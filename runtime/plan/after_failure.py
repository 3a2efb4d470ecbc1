"""Guarantees of sources and sinks after a failure, in a job with checkpoints.

| the sink | its rows come in one order, the same each time | any other flow |
| --- | --- | --- |
| keeps its last ordinal with its rows | exactly once, written at once | exactly once, held |
| does not | at least once | at least once |
| commits once, at its end, and has no position | at most once | at most once |

A sink that holds is given rows once the checkpoint that contains them is complete
(docs/decisions/2026-11-30-checkpoints.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from slackwater.runtime.json_form import JsonObject
from slackwater.runtime.plan.flow_fingerprints import why_rows_differ
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import SinkStep, SourceStep, sinks_among, sources_among
from slackwater.runtime.sources.spec import Replay

__all__ = ["Guarantee", "guarantee_lines", "guarantees"]


@dataclass(frozen=True, kw_only=True)
class Guarantee(JsonObject):
    """Guarantee of a source or a sink after a failure.

    Attributes:
        step: name of the source or sink.
        kind: "source" or "sink".
        word: how often each row counts, or is written.
        is_held: whether a sink is given rows only once their checkpoint is complete.
        why: reason, one sentence.
    """

    step: str
    kind: Literal["source", "sink"]
    word: Literal["exactly once", "at least once", "at most once"]
    is_held: bool = False
    why: str

    @property
    def text(self) -> str:
        """The guarantee as a line of text."""
        held = ", held" if self.is_held else ""
        return f"{self.step} ({self.kind}): {self.word}{held}: {self.why}"


def guarantees(steps: Mapping[str, Step]) -> list[Guarantee]:
    """Return the guarantees of a flow's sources, then of its sinks, in their order."""
    return [
        *(_of_source(step) for step in sources_among(steps.values())),
        *(_of_sink(step, steps) for step in sinks_among(steps.values())),
    ]


def guarantee_lines(steps: Mapping[str, Step]) -> list[str]:
    """Return the section of `explain` on failures."""
    return [
        "after a failure, from the last complete checkpoint on",
        *(f"    {known.text}" for known in guarantees(steps)),
    ]


_OF_REPLAY: Mapping[Replay, str] = {
    "exact": "its input gives the same rows again, from a position on",
    "again": "its input gives the same rows again, from its start on",
    "retained": "as long as the origin of its input still has the rows since the checkpoint",
    "none": "rows that its input hands over are spooled beside the checkpoints before they count",
}


def _of_source(step: SourceStep) -> Guarantee:
    why = _OF_REPLAY[step.source.traits.replay]
    return Guarantee(step=step.name, kind="source", word="exactly once", why=why)


def _of_sink(step: SinkStep, steps: Mapping[str, Step]) -> Guarantee:
    why_not = why_rows_differ(steps, step.name)
    traits = step.output.traits
    if traits.only_whole and not traits.has_position:
        why = "it commits at its end alone, so rows before the checkpoint are lost"
        return Guarantee(step=step.name, kind="sink", word="at most once", why=why)
    if not traits.keeps_ordinal:
        why = "it does not say which rows it has, so those since the checkpoint come again"
        if why_not:
            why = f"{why}, perhaps others, for {why_not}"
        return Guarantee(step=step.name, kind="sink", word="at least once", why=why)
    if why_not:
        why = f"rows are written once a checkpoint has them, for {why_not}"
    else:
        why = "the same rows come again in the same order, and those that it has are skipped"
    if step.may_have_writers:
        why += "; where replicas write their own parts (ordered=False), the job is refused"
    return Guarantee(
        step=step.name, kind="sink", word="exactly once", is_held=bool(why_not), why=why
    )
