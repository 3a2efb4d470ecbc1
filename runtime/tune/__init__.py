"""Setting slacks by a deadline: policies, predictors, trigger, hill climbing ([ssg] §5.2)."""

from runtime.tune.chosen import chosen_tuning
from runtime.tune.contract import SetSlack, SlackPolicy
from runtime.tune.feasible import check_deadline
from runtime.tune.guarded import GuardedPolicy
from runtime.tune.make import make_policy
from runtime.tune.paths import Paths, measured_ns
from runtime.tune.record import TuningRecord

__all__ = [
    "GuardedPolicy",
    "Paths",
    "SetSlack",
    "SlackPolicy",
    "TuningRecord",
    "check_deadline",
    "chosen_tuning",
    "make_policy",
    "measured_ns",
]
