"""From settings to a policy."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.config import Tuning
from runtime.errors import SettingError
from runtime.flow.plan import Plan
from runtime.flow.slack import slack_ns
from runtime.measure.samples import StageSample
from runtime.tune.contract import SlackPolicy
from runtime.tune.paths import Paths
from runtime.tune.policies import EvenSplit, MaxTimestamp, StaticSlack, TcpAdaptation


def make_policy(
    plan: Plan, tuning: Tuning, *, history: Iterable[StageSample] = ()
) -> SlackPolicy | None:
    """Return the policy of a plan; None if it has no gate to tune.

    Args:
        plan: with a deadline.
        tuning: what the user asked for.
        history: samples of earlier runs, seconds ascending; of several runs one after the other.

    Raises:
        SettingError: there is no such policy.
    """
    paths = Paths.of(plan)
    deadline_ns = plan.deadline_ns
    if deadline_ns is None or not paths.tuned:
        return None
    del history
    match tuning.policy:
        case "sltuner" | "even split":
            return EvenSplit(paths, deadline_ns=deadline_ns)
        case "even split, last second":
            return EvenSplit(paths, deadline_ns=deadline_ns, remembers=False)
        case "max timestamp":
            return MaxTimestamp(paths)
        case "tcp":
            return TcpAdaptation(paths, start_ns=deadline_ns // 2)
        case "ready-only":
            return StaticSlack(paths, None)
        case length:
            try:
                return StaticSlack(paths, slack_ns(length, who="policy"))
            except SettingError as problem:
                raise SettingError(
                    f"policy={length!r} is none of 'sltuner', 'even split', "
                    "'even split, last second', 'max timestamp', 'tcp', 'ready-only', nor a slack "
                    f"such as '500ms': {problem}"
                ) from None
