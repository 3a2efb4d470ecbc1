"""From settings to a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from runtime.config import Tuning
from runtime.errors import SettingError
from runtime.measure.samples import StageSample
from runtime.model import READY_ONLY, ReleaseRule
from runtime.plan.plan import Plan
from runtime.plan.slack import rule_of
from runtime.tune.decide.policies import (
    SPLITS,
    Calibration,
    MaxTimestamp,
    StaticSlack,
    TcpAdaptation,
    kept_back_ns,
    make_split,
)
from runtime.tune.decide.tuner import SlackTuner
from runtime.tune.record.contract import SlackPolicy
from runtime.tune.record.paths import Paths


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
    margin_ns = kept_back_ns(deadline_ns)
    named: dict[str, Callable[[], SlackPolicy]] = {
        "sltuner": lambda: SlackTuner(
            paths, deadline_ns=deadline_ns, tuning=tuning, history=history
        ),
        **{name: partial(make_split, paths, name, deadline_ns=deadline_ns) for name in SPLITS},
        "max timestamp": lambda: MaxTimestamp(paths),
        "tcp": lambda: TcpAdaptation(paths, start_ns=deadline_ns // 2),
        "k-slack": lambda: StaticSlack(paths, ReleaseRule.in_full(deadline_ns - margin_ns)),
        "ready-only": lambda: StaticSlack(paths, READY_ONLY),
        "calibration": lambda: Calibration(paths, most_ns=deadline_ns, seed=tuning.seed),
    }
    if tuning.policy in named:
        return named[tuning.policy]()
    try:
        return StaticSlack(paths, rule_of(tuning.policy, who="policy"))
    except SettingError as problem:
        raise SettingError(
            f"policy={tuning.policy!r} is none of {', '.join(map(repr, named))}, nor a slack such "
            f"as '500ms': {problem}"
        ) from None
