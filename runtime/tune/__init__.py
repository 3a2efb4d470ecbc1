"""Setting slacks by a deadline: policies, predictors, trigger, hill climbing ([ssg] §5.2).

Three rooms, each on those before it: `record` (what is told, answered and kept), `predict` (what a
slack would bring), `decide` (which slack is set). What a host needs of them is here.
"""

from runtime.control.commands import SetRelease
from runtime.tune.decide.chosen import chosen_tuning
from runtime.tune.decide.closing_shares import with_closing_shares
from runtime.tune.decide.feasible import HOP_NS, deadline_refusal
from runtime.tune.decide.guarded import GuardedPolicies, GuardedPolicy
from runtime.tune.decide.make import make_policy
from runtime.tune.record.contract import SlackPolicy
from runtime.tune.record.paths import Paths, measured_ns
from runtime.tune.record.tuning_record import TuningRecord

__all__ = [
    "HOP_NS",
    "GuardedPolicies",
    "GuardedPolicy",
    "Paths",
    "SetRelease",
    "SlackPolicy",
    "TuningRecord",
    "chosen_tuning",
    "deadline_refusal",
    "make_policy",
    "measured_ns",
    "with_closing_shares",
]
