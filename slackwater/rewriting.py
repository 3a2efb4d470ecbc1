"""Rewrite a flow by its user's words: same results, less work."""

from __future__ import annotations

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.rewrite.moves import FlowPlan, rewrites_of, thinkable
from slackwater.runtime.shown import shown

__all__ = ["rewritten"]


@checked_call
def rewritten(flow: Dataflow, *rewrites: str) -> Dataflow:
    """Return a flow with the same results whose filters stand elsewhere.

    The results' order is the same, too, unless replicas feed a sink without a gate between: then it
    differs from run to run in any case.

    Args:
        flow: flow to rewrite, which stays unchanged.
        rewrites: applied in order, as `slackwater plan` prints them: "split late",
            "late before jams", "share late.1, late.2".

    Raises:
        FlowError: a rewrite would change results; says why.
    """
    plan = FlowPlan(flow.graph)
    for text in rewrites:
        plan = _done(plan, text)
    return flow.with_steps(plan.graph.steps.values())


def _done(plan: FlowPlan, text: str) -> FlowPlan:
    wanted = " ".join(text.split()) if isinstance(text, str) else None
    for rewrite in thinkable(plan.graph.steps):
        if rewrite.text == wanted:
            return plan.done(rewrite)
    known = [rewrite.text for rewrite, _ in rewrites_of(plan)]
    raise FlowError(
        f"dataflow {plan.graph.flow!r} cannot be rewritten by {shown(text)}: a rewrite is 'split "
        "FILTER', 'FILTER before STEP', with the step that feeds it, or 'share FILTER, FILTER'; "
        f"allowed here: {'; '.join(known) or 'none'}"
    )
