"""Fingerprint of a flow, which a job and its checkpoint must share.

| group | of |
| --- | --- |
| steps | each step's settings and functions, without the number of its replicas |
| schemas | the columns of each step's rows |
| stages | how many stages each step has, as text |
| settings | settings on which rows in states depend, as text |

Placement is not among them, nor are limits of memory, the tuner, and a sink's output: that says by
its `last_ordinal()` or its position whether it goes on.
"""

from __future__ import annotations

import hashlib
from collections import Counter

from slackwater.runtime.model import format_ns
from slackwater.runtime.plan.canonical import canonical_schema, canonical_state
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import SinkStep, SourceStep

__all__ = ["fingerprint_of"]


def fingerprint_of(plan: Plan) -> dict[str, dict[str, str]]:
    """Return {group: {name of a step or setting: digest or text}} of a plan."""
    names = {stage.name: stage.subject.step for stage in plan.stages}
    texts: dict[str, list[str]] = {}
    steps: dict[str, Step] = {}
    for stage in plan.stages:
        is_first = stage.subject.part in (None, 1, "gate")
        for step in (stage.step, *stage.chain) if is_first else ():
            name = names.get(step.name, step.name)
            texts.setdefault(name, []).append(canonical_state(step, names=names))
            steps[name] = step
    counts = Counter(s.subject.step for s in plan.stages if s.subject.part != "gate")
    return {
        "steps": {name: _digest("\n".join(own)) for name, own in texts.items()},
        "schemas": {name: _digest(canonical_schema(step)) for name, step in steps.items()},
        "stages": {name: str(count) for name, count in counts.items()},
        "settings": _settings(plan, steps),
    }


def _settings(plan: Plan, steps: dict[str, Step]) -> dict[str, str]:
    settings = {"Limits.fuse": str(plan.limits.fuse)}
    if plan.deadline_ns is not None:
        settings["deadline"] = format_ns(plan.deadline_ns)
    for name, step in steps.items():
        if isinstance(step, SourceStep):
            source = step.source
            own = {"speed": source.speed, "start": source.start}
            settings |= {f"{name}.{key}": str(v) for key, v in own.items() if v is not None}
        elif isinstance(step, SinkStep):
            settings[f"{name}.ordered"] = str(step.ordered)
    return settings


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
