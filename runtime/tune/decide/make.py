"""Make a policy from settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from slackwater.runtime.config import POLICY, Tuning
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.whole_steps import history_by_step
from slackwater.runtime.model import NS_PER_SECOND, READY_ONLY, ReleaseRule
from slackwater.runtime.plan.slack import rule_of
from slackwater.runtime.shown import shown
from slackwater.runtime.tune.decide.policies import (
    SPLITS,
    Aimd,
    Calibration,
    LargestDelay,
    StaticSlack,
    kept_back_ns,
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
        tuning: the user's settings.
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
    margin_ns, interval_ns = kept_back_ns(deadline_ns), graph.interval_ns
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
