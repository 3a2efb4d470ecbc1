"""Who a job that stands still waits for: read off its stages' reports, from the sinks upstream.

```
talks ──────────▶ both ──▶ sink     sink: nothing for 42 s   both: nothing let go, waits for …
falls-silent ──▶  (gate)            falls-silent: nothing    so it is that source, since 42 s
```

A stage stands still that has let nothing go, neither a row nor a promise, for `Limits.still_ns`.
A sink that gets nothing since everything before it is filtered, or in a window that is still
open, does not: what is before it moves. Nor does one behind a paced source of whose history nothing
is due for a while: it gives all that it should, and who waits for it will not wait for ever.
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
    """Why a stage gives nothing; `who` is a stage, `at` the gate that waits for it."""

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
    """Return what stands still, and for want of whom: sinks that wait for the same together.

    Args:
        stages: all that have said something.
        channels: all between them.
        elapsed_s: since the start of the job.
        still_ns: for how long nothing may move before it is told.
    """
    walk = _Walk({stage.name: stage for stage in stages}, channels, still_ns)
    found: dict[tuple[_Cause, ...], list[StageReport]] = {}
    for stage in stages:
        if stage.kind == "sink" and (causes := walk.causes(stage.name)):
            found.setdefault(tuple(causes), []).append(stage)
    return [_told(causes, sinks, elapsed_s) for causes, sinks in found.items()]


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
        """Return why a stage gives nothing; nothing, if it moves, has ended or is merely quiet."""
        stage = self._stages.get(name)
        if stage is None or not self._stands(stage):
            return []
        if (stuck := self._stuck.get(stage.slot)) is not None:  # nothing else of its slot can run
            return [_Cause("stuck", stuck)]
        if stage.kind == "source":
            if stage.due_in_ns is not None:
                return []
            return [_Cause("early" if stage.early and stage.in_flight else "silent", name)]
        return self._of_gate(stage) if stage.waiting_for else self._of_inputs(stage)

    def _of_inputs(self, stage: StageReport) -> list[_Cause]:
        inputs = self._inputs.get(stage.name, [])
        found = _union([self.causes(one) for one in inputs])
        if not found and stage.in_flight:
            return [_Cause("full", stage.name)]
        # Filtered, or in an open window: what is before it goes on.
        return [] if any(self._moves(one) for one in inputs) else found

    def _of_gate(self, stage: StageReport) -> list[_Cause]:
        found: list[list[_Cause]] = []
        for name in stage.waiting_for:
            holder = self._stages.get(name)
            if holder is None:
                continue
            if holder.kind == "source" and not self._stands(holder):
                writers = ", ".join(holder.waiting_for)
                found.append([_Cause("unpromised", name, stage.name, writers)])
                continue
            behind = self.causes(name)
            found.append([_Cause(c.kind, c.who, c.at or stage.name, c.words) for c in behind])
        return _union(found)

    def _stands(self, stage: StageReport) -> bool:
        return stage.still_ns is not None and stage.still_ns >= self._still_ns

    def _moves(self, name: str) -> bool:
        stage = self._stages.get(name)
        if stage is None or stage.still_ns is None:
            return False
        return stage.due_in_ns is not None or not self._stands(stage)


def _union(found: Collection[list[_Cause]]) -> list[_Cause]:
    return list(dict.fromkeys(cause for some in found for cause in some))


def _told(causes: Sequence[_Cause], sinks: Sequence[StageReport], elapsed_s: float) -> Standstill:
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
    if kind == "early":
        return f"{waits}source {who}, whose rows are further ahead of their arrivals than `ahead=`"
    if kind == "unpromised":
        writers = ", ".join(cause.words for cause in causes if cause.words)
        of_whom = f" (its writer {writers})" if writers else ""
        return f"{waits}source {who}{of_whom}, which sends rows and promises nothing new"
    if kind == "stuck":
        return f"{waits}stage {who}, whose function or sink does not return"
    return f"{waits}stage {who}, which has rows and can hand on none: what is behind it is full"


def _way_out(kind: str, *, is_gated: bool) -> str:
    if kind == "silent" and is_gated:
        return (
            "if it may be silent, give that source `idle=`, and the others go on without it; or a "
            "slack or a deadline, and they wait no longer than that"
        )
    return {
        "silent": "see whether its input is alive, or stop the job",
        "early": "raise `ahead=`, or put the clock of that source right",
        "unpromised": (
            "give that source `idle=`, `disorder=` or `promise=`; or a slack to the step that waits"
        ),
        "stuck": "see `slackwater logs`, and give what it calls a time limit",
        "full": "see what the stages behind it wait for",
    }[kind]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(repr(name) for name in names[:_NAMED]) + more


def standing(one: Standstill) -> str:
    """Return what a reader is told of it, in one sentence and the way out."""
    sinks = f"sink {_listed(one.sinks)}"
    return (
        f"stands still: {sinks} has had nothing for {format_ns(one.still_s * 1e9)} (since "
        f"{one.since_s:.1f} s): {one.why}. What to do: {one.do}"
    )
