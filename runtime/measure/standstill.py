"""Standstills of a job: what its sinks wait for, read off the stages' reports.

```
talks ──────────▶ both ──▶ sink     sink: nothing for 42 s   both: nothing left, waits for …
falls-silent ──▶  (gate)            falls-silent: nothing    so it is that source, since 42 s
```

A stage stands still that has sent neither a row nor a promise for `Limits.still_ns`. A sink without
rows does not stand still while stages upstream move: their rows are filtered, or in an open window.
Nor does a sink of a paced source whose next row is due later: the source gives all that it should,
and the wait ends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from slackwater.runtime.measure.report import ChannelReport, StageReport, Standstill
from slackwater.runtime.model import format_ns

__all__ = ["standing", "standstills"]

_NAMED = 3


@dataclass(frozen=True)
class _Cause:
    """Cause of a standstill: `who` is a stage, `at` the gate that waits."""

    kind: str
    who: str
    at: str | None = None
    words: str = field(default="", compare=False)


def standstills(
    stages: Sequence[StageReport],
    channels: Sequence[ChannelReport],
    *,
    elapsed_s: float,
    still_ns: int,
) -> list[Standstill]:
    """Return the standstills, sinks with the same cause together.

    Args:
        stages: reports of all stages that have one.
        channels: all channels between them.
        elapsed_s: since the start of the job.
        still_ns: time without a row or promise that makes a standstill.
    """
    walk = _Walk({stage.name: stage for stage in stages}, channels, still_ns)
    waiting: dict[tuple[_Cause, ...], list[StageReport]] = {}
    for stage in stages:
        if stage.kind == "sink" and (causes := walk.causes(stage.name)):
            waiting.setdefault(tuple(causes), []).append(stage)
    return [_standstill(causes, sinks, elapsed_s) for causes, sinks in waiting.items()]


class _Walk:
    def __init__(
        self, stages: Mapping[str, StageReport], channels: Sequence[ChannelReport], still_ns: int
    ) -> None:
        self._stages, self._still_ns = stages, still_ns
        self._stuck = {stage.slot: stage.name for stage in stages.values() if stage.is_stuck}
        self._inputs: dict[str, list[str]] = {}  # {stage: stages before it}
        for channel in channels:
            self._inputs.setdefault(channel.target, []).append(channel.source)

    def causes(self, name: str) -> list[_Cause]:
        """Return why a stage stands still; empty if it does not, or has ended."""
        stage = self._stages.get(name)
        if stage is None or not self._stands(stage):
            return []
        if (stuck := self._stuck.get(stage.slot)) is not None:  # no other stage of the slot can run
            return [_Cause("stuck", stuck)]
        if stage.kind == "source":
            if stage.due_in_ns is not None:
                return []
            if stage.to_pass_over:
                return [_Cause("again", name, words=f"{stage.to_pass_over:,}")]
            return [_Cause("early" if stage.early and stage.in_flight else "silent", name)]
        return self._of_gate(stage) if stage.waiting_for else self._of_inputs(stage)

    def _of_inputs(self, stage: StageReport) -> list[_Cause]:
        inputs = self._inputs.get(stage.name, [])
        causes = _union([self.causes(name) for name in inputs])
        if not causes and stage.in_flight:
            return [_Cause("full", stage.name)]
        # Rows are filtered, or in an open window, while stages upstream move.
        return [] if any(self._moves(name) for name in inputs) else causes

    def _of_gate(self, stage: StageReport) -> list[_Cause]:
        causes: list[list[_Cause]] = []
        for name in stage.waiting_for:
            holder = self._stages.get(name)
            if holder is None:
                continue
            if holder.kind == "source" and not self._stands(holder):
                writers = ", ".join(holder.waiting_for)
                causes.append([_Cause("unpromised", name, stage.name, writers)])
                continue
            upstream = self.causes(name)
            causes.append([_Cause(c.kind, c.who, c.at or stage.name, c.words) for c in upstream])
        return _union(causes)

    def _stands(self, stage: StageReport) -> bool:
        return stage.still_ns is not None and stage.still_ns >= self._still_ns

    def _moves(self, name: str) -> bool:
        stage = self._stages.get(name)
        if stage is None or stage.still_ns is None:
            return False
        return stage.due_in_ns is not None or not self._stands(stage)


def _union(lists: Collection[list[_Cause]]) -> list[_Cause]:
    return list(dict.fromkeys(cause for causes in lists for cause in causes))


def _standstill(
    causes: Sequence[_Cause], sinks: Sequence[StageReport], elapsed_s: float
) -> Standstill:
    still_s = min(sink.still_ns or 0 for sink in sinks) / 1e9
    kinds = list(dict.fromkeys(cause.kind for cause in causes))
    why = "; ".join(_why(kind, [c for c in causes if c.kind == kind]) for kind in kinds)
    gated = any(cause.at is not None for cause in causes)
    do = "; ".join(_way_out(kind, is_gated=gated) for kind in kinds)
    return Standstill(
        sinks=[sink.name for sink in sinks],
        still_s=still_s,
        since_s=max(elapsed_s - still_s, 0.0),
        waits_for=list(dict.fromkeys(cause.who for cause in causes)),
        why=why,
        do=do,
    )


def _why(kind: str, causes: Sequence[_Cause]) -> str:
    who = _listed([cause.who for cause in causes])
    gates = _listed(list(dict.fromkeys(c.at for c in causes if c.at is not None)))
    waits = f"{gates} waits for " if gates else ""
    if kind == "silent":
        return f"{waits}source {who}, which gives nothing"
    if kind == "again":
        left = ", ".join(cause.words for cause in causes)
        return f"{waits}source {who}, which passes over rows that it had before ({left} to come)"
    if kind == "early":
        return f"{waits}source {who}, whose rows are further ahead of their arrivals than `ahead=`"
    if kind == "unpromised":
        writers = ", ".join(cause.words for cause in causes if cause.words)
        of_whom = f" (its writer {writers})" if writers else ""
        return f"{waits}source {who}{of_whom}, which sends rows and promises nothing new"
    if kind == "stuck":
        return f"{waits}stage {who}, whose function or sink does not return"
    return f"{waits}stage {who}, which has rows and can hand on none: the stages after it are full"


def _way_out(kind: str, *, is_gated: bool) -> str:
    if kind == "silent" and is_gated:
        return (
            "if it may be silent, give that source `idle=`, and the others go on without it; or a "
            "slack or a deadline, and they wait no longer than that"
        )
    return {
        "silent": "see whether its input is alive, or stop the job",
        "again": (
            "wait: new rows follow; an input that is opened at a position (replay = 'exact' or "
            "'retained') gives none again"
        ),
        "early": "raise `ahead=`, or correct the clock of that source",
        "unpromised": (
            "give that source `idle=`, `disorder=` or `promise=`; or a slack to the step that waits"
        ),
        "stuck": "see `slackwater logs`, and give what it calls a time limit",
        "full": "see what the stages after it wait for",
    }[kind]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(repr(name) for name in names[:_NAMED]) + more


def standing(standstill: Standstill) -> str:
    """Return a standstill's text: a sentence, and what to do."""
    sinks = f"sink {_listed(standstill.sinks)}"
    return (
        f"stands still: {sinks} has had nothing for {format_ns(standstill.still_s * 1e9)} (since "
        f"{standstill.since_s:.1f} s): {standstill.why}. What to do: {standstill.do}"
    )
