"""Fingerprint of a flow, which a job and its checkpoint must share.

| group | of |
| --- | --- |
| steps | each step's settings and functions, without names and the number of its replicas |
| inputs | the names of each step's inputs, as text |
| schemas | the columns of each step's rows |
| stages | how many stages each step has, as text |
| speeds, starts | the pace of each source that is replayed, as text |
| orders | whether a sink is given rows in order, as text |
| settings | the deadline, and whether steps are fused, as text |

Placement is not among them, nor are limits of memory, the tuner, and a sink's output: that says by
its `last_ordinal()` or its position whether it goes on.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping

from slackwater.runtime.model import format_ns
from slackwater.runtime.plan.canonical import canonical_schema, canonical_state
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import SinkStep, SourceStep

__all__ = ["fingerprint_of", "renamed_fingerprint"]

_SEPARATOR = ", "


def fingerprint_of(plan: Plan) -> dict[str, dict[str, str]]:
    """Return {group: {name of a step or setting: digest or text}} of a plan."""
    names = {stage.name: stage.subject.step for stage in plan.stages}  # of replicas, too
    texts: dict[str, list[str]] = {}
    steps: dict[str, Step] = {}
    for stage in plan.stages:
        is_first = stage.subject.part in (None, 1, "gate")
        for step in (stage.step, *stage.chain) if is_first else ():
            name = names.get(step.name, step.name)
            texts.setdefault(name, []).append(canonical_state(step))
            steps[name] = step
    counts = Counter(s.subject.step for s in plan.stages if s.subject.part != "gate")
    return {
        "steps": {name: _digest("\n".join(own)) for name, own in texts.items()},
        "inputs": {name: _SEPARATOR.join(step.inputs) for name, step in steps.items()},
        "schemas": {name: _digest(canonical_schema(step)) for name, step in steps.items()},
        "stages": {name: str(count) for name, count in counts.items()},
        "settings": _settings(plan),
        **_options(steps),
    }


def renamed_fingerprint(
    then: Mapping[str, Mapping[str, str]], renamed: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return a fingerprint with other names of steps.

    Args:
        then: fingerprint of a flow.
        renamed: new names of steps, {old: new}.
    """
    made = {
        group: {renamed.get(name, name): own for name, own in each.items()}
        for group, each in then.items()
    }
    made["inputs"] = {
        name: _SEPARATOR.join(renamed.get(step, step) for step in inputs.split(_SEPARATOR))
        for name, inputs in made.get("inputs", {}).items()
    }
    return made


def _settings(plan: Plan) -> dict[str, str]:
    settings = {"fuse": str(plan.limits.fuse)}
    if plan.deadline_ns is not None:
        settings["deadline"] = format_ns(plan.deadline_ns)
    return settings


def _options(steps: Mapping[str, Step]) -> dict[str, dict[str, str]]:
    """Return settings of sources and sinks that digests of steps are without."""
    sources = {name: step.source for name, step in steps.items() if isinstance(step, SourceStep)}
    return {
        "speeds": {name: str(spec.speed) for name, spec in sources.items() if spec.speed},
        "starts": {name: str(spec.start) for name, spec in sources.items() if spec.start},
        "orders": {
            name: "ordered" if step.ordered else "as rows come"
            for name, step in steps.items()
            if isinstance(step, SinkStep)
        },
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
