"""Make a policy from settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from slackwater.runtime.config import POLICY, Tuning
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.whole_steps import history_by_step
from slackwater.runtime.model import NS_PER_SECOND, READY_ONLY, ReleaseRule, duration_ns, format_ns
from slackwater.runtime.plan.slack import rule_of
from slackwater.runtime.shown import a_kind, shown
from slackwater.runtime.tune.decide.policies import (
    SPLITS,
    Aimd,
    Calibration,
    LargestDelay,
    StaticSlack,
    deadline_margin_ns,
    make_split,
)
from slackwater.runtime.tune.record.contract import SlackPolicy
from slackwater.runtime.tune.record.paths import Paths


def make_policy(
    graph: FlowGraph, tuning: Tuning, *, history: Iterable[StageSample] = ()
) -> SlackPolicy | None:
    """Return the policy of a flow; None if it has no gate to tune.

    Args:
        graph: graph of a flow with a deadline.
        tuning: settings of the user.
        history: samples of parts in earlier runs, seconds ascending; of several runs one after
            the other.

    Raises:
        SettingError: no policy has that name, it does not fit the graph's interval, or the user's
            function made an object that is not a policy.
    """
    paths, deadline_ns = Paths.of(graph), graph.deadline_ns
    if deadline_ns is None or not paths.tuned:
        return None
    if not isinstance(tuning.policy, str):
        own: SlackPolicy = POLICY.make(tuning.policy, graph)
        return own
    margin_ns, interval_ns = deadline_margin_ns(deadline_ns), graph.interval_ns
    if tuning.policy == "sltuner" and interval_ns != NS_PER_SECOND:
        raise SettingError(
            f"interval={shown(tuning.interval)}, and policy='sltuner' thinks in seconds: its "
            "models say "
            "what the next second brings; leave interval= out, or take another policy, such as "
            "policy='slowly decaying maximum', the rule that it begins with"
        )
    split = partial(make_split, paths, deadline_ns=deadline_ns, interval_ns=interval_ns)
    named: dict[str, Callable[[], SlackPolicy]] = {
        "sltuner": partial(_sltuner, paths, deadline_ns, tuning, history),
        **{name: partial(split, name) for name in SPLITS},
        "largest delay": lambda: LargestDelay(paths),
        "aimd": lambda: Aimd(paths, start_ns=deadline_ns // 2),
        "fixed wait": lambda: StaticSlack(paths, ReleaseRule.in_full(deadline_ns - margin_ns)),
        "ready-only": lambda: StaticSlack(paths, READY_ONLY),
        "calibration": lambda: Calibration(
            paths, most_ns=deadline_ns, interval_ns=interval_ns, seed=tuning.seed
        ),
    }
    if tuning.policy in named:
        return named[tuning.policy]()
    try:
        return StaticSlack(paths, rule_of(tuning.policy, who="policy"))
    except SettingError as problem:
        raise SettingError(
            f"policy={shown(tuning.policy)} is none of {', '.join(map(repr, named))}, nor a slack "
            f"such as '500ms': {problem}"
        ) from None


def _sltuner(
    paths: Paths, deadline_ns: int, tuning: Tuning, history: Iterable[StageSample]
) -> SlackPolicy:
    from slackwater.runtime.tune.decide.tuner import SlackTuner  # noqa: PLC0415 (its models: slow to import)

    return SlackTuner(
        paths, deadline_ns=deadline_ns, tuning=tuning, history=history_by_step(history)
    )


if TYPE_CHECKING:
    from slackwater.runtime.plan.plan import Plan

LEAST_NS = 50_000_000
"""Least interval: slots are asked 20 ms after its end, and have half of it to answer."""


def chosen_tuning(plan: Plan, tuning: Tuning | None) -> Tuning | None:
    """Return the tuning of a plan; None if it has no slack to tune.

    Raises:
        SettingError: `tuning` is of another type, names no policy or one that its interval does
            not fit, or the flow has no deadline.
    """
    if tuning is not None and not isinstance(tuning, Tuning):
        raise SettingError(
            f"flow {plan.flow!r}: tuning={shown(tuning)} is {a_kind(tuning)}; write "
            "tuning=sw.Tuning(probability=0.95), say"
        )
    if plan.deadline_ns is None:
        if tuning is not None:
            raise SettingError(
                f"flow {plan.flow!r} has no deadline, and tuning= says how one is kept; write "
                'Dataflow(name, deadline="6s"), or leave tuning= out'
            )
        return None
    tuning = tuning or Tuning()
    what = f"flow {plan.flow!r}: interval"
    if duration_ns(tuning.interval, what=what, positive=True) < LEAST_NS:
        raise SettingError(
            f"{what}={shown(tuning.interval)} must be at least {format_ns(LEAST_NS)}: slots are "
            "asked for their samples as often, over the network; write interval='1s', say"
        )
    graph = FlowGraph.of(replace(plan, tuning=tuning))
    return None if make_policy(graph, tuning) is None else tuning
