"""Shares of the deadline that bound how long closing windows wait.

```
deadline ├──── kept back ─┤                            each tuned gate on a path, and each step
         window closes ≤ a half │ tuned gate: the rest  whose windows close, has an equal share
```

A window's wait is measured as its stage's latency, like the wait of rows in a gate: the unused rest
of its share goes to the tuned gates beside it. A window closes by the clock once its stage has
heard how far arrivals are: so sources report them twenty times in a share, which includes that
twentieth.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slackwater.runtime.closing.typed import Typed
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.model import format_ns
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune.decide.feasible import HOP_NS
from slackwater.runtime.tune.decide.policies import deadline_margin_ns
from slackwater.runtime.tune.record.paths import Paths

if TYPE_CHECKING:
    from slackwater.runtime.plan.plan import Plan, Stage

WORDS_PER_SHARE = 20
"""Reports of arrivals that a source sends in a share, if no rows come."""


def with_closing_shares(plan: Plan, *, hop_ns: int = HOP_NS) -> tuple[Plan, list[str]]:
    """Return the plan with closing policies bounded by their shares, and notes.

    `Paths.even_split_ns` gives the shares, over tuned gates and closing steps, of the deadline less
    the margin that every rule keeps back and the certain times of a path: until a source looks, and
    the least time of hops between slots. A user's own lower bound stays. Where sources report
    arrivals, at most a twentieth of a share is for the time until such a report.

    Args:
        plan: placed, with its tuning; without a deadline it stays as it is.
        hop_ns: least time of a message between two slots.
    """
    closing = [stage for stage in plan.stages if _close_of(stage) is not None]
    if plan.deadline_ns is None or not closing:
        return plan, []
    graph = FlowGraph.of(plan)
    steps = dict.fromkeys(stage.subject.whole for stage in closing)
    paths = Paths(graph.inputs, (*graph.tuned, *steps))
    budget_ns = plan.deadline_ns - deadline_margin_ns(plan.deadline_ns)
    shares = paths.even_split_ns(_certain_ns(plan, hop_ns), max(budget_ns, 0))
    notes: dict[str, str] = {}  # {step: its note}
    bounded: dict[str, Stage] = {}
    words_ns: list[int] = []  # longest gaps between reports, in the time of arrivals
    for stage in closing:
        close, step_name = _close_of(stage), stage.subject.step
        assert close is not None, "it is among those"
        share_ns = shares[stage.subject.whole]
        word_ns = at_most_ns = None  # in the time of arrivals
        if close.speed is not None:
            longest_ns = int(share_ns * close.speed)
            word_ns = 0 if close.by_clock else min(close.every_ns, longest_ns // WORDS_PER_SHARE)
            at_most_ns = longest_ns - word_ns
        policy = None if at_most_ns is None else _within(close.policy, at_most_ns)
        if policy is None:
            notes[step_name] = _unbounded(stage, plan)
            continue
        step: Any = stage.step
        if word_ns:
            words_ns.append(word_ns)
        bounded[stage.name] = replace(
            stage, step=replace(step, close=replace(close, policy=policy))
        )
        notes[step_name] = (
            f"windows of {step_name!r} close at most {format_ns(share_ns)} after their ends by "
            f"the clock, that they leave the rest of the way its part of the deadline of "
            f"{format_ns(plan.deadline_ns)}; what that costs in misses is counted"
        )
    bounded |= _heard_more_often(plan, words_ns)
    stages = tuple(bounded.get(stage.name, stage) for stage in plan.stages)
    return replace(plan, stages=stages), list(notes.values())


def _certain_ns(plan: Plan, hop_ns: int) -> dict[Subject, float]:
    """Return {step: its least time}, by way of its gate if it has replicas."""
    to_stage_ns: dict[str, float] = {}  # within its step
    certain_ns: dict[Subject, float] = {}
    for stage in plan.stages:
        step = stage.subject.whole
        hops = [plan.slots[hop.source] != plan.slots[hop.target] for hop in stage.inputs]
        own_ns = hop_ns * any(hops) if hops else plan.limits.source_gap_ns
        before_ns = to_stage_ns[stage.inputs[0].source] if stage.shares_gate else 0
        to_stage_ns[stage.name] = before_ns + own_ns
        certain_ns[step] = max(certain_ns.get(step, 0), before_ns + own_ns)
    return certain_ns


def _heard_more_often(plan: Plan, words_ns: list[int]) -> dict[str, Stage]:
    """Return {name: source} of sources that report arrivals, as often as all shares need."""
    sources: dict[str, Stage] = {}
    for stage in plan.stages:
        arrivals = stage.arrivals
        if arrivals is not None and arrivals.every_ns is not None:
            every_ns = min([arrivals.every_ns, *words_ns])
            sources[stage.name] = replace(stage, arrivals=replace(arrivals, every_ns=every_ns))
    return sources


def _close_of(stage: Stage) -> Any:
    return stage.step.traits.close


def _within(policy: Any, at_most_ns: int) -> Any:
    """Return a policy that bounds each window's wait; None if it cannot."""
    if isinstance(policy, Typed):
        bounded = _within(policy.policy, at_most_ns)
        return None if bounded is None else replace(policy, policy=bounded)
    if not hasattr(policy, "at_most_ns"):
        return None
    own_ns = policy.at_most_ns
    return replace(policy, at_most_ns=at_most_ns if own_ns is None else min(own_ns, at_most_ns))


def _unbounded(stage: Stage, plan: Plan) -> str:
    close, name = stage.step.traits.close, stage.subject.step
    deadline = format_ns(plan.deadline_ns or 0)
    assert close is not None, "only stages that close in time have a share"
    if close.speed is None:
        return (
            f"the deadline of {deadline} says nothing of windows of {name!r}: its sources "
            "are not replayed at one speed, so their arrivals are not times by the clock; write "
            "speed=1.0 at each"
        )
    return (
        f"windows of {name!r} close {close.policy.text}, however long that takes: the "
        f"deadline of {deadline} bounds only sw.closing.probslack(…)"
    )
