"""Tuning of slacks by a deadline: policies, predictors, trigger, hill climbing ([ssg] §5.2).

Three rooms, each on those before it: `record` (samples, settings and their record), `predict` (what
a slack would bring), `decide` (which slack is set). `job_deciders.py` has a job's policies beside
its live estimate, as the control loop asks them. Names that a host needs are exported here.
"""

from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.tune.decide.closing_shares import with_closing_shares
from slackwater.runtime.tune.decide.feasible import HOP_NS, deadline_refusal
from slackwater.runtime.tune.decide.guarded import GuardedPolicies, GuardedPolicy
from slackwater.runtime.tune.decide.make import chosen_tuning, make_policy
from slackwater.runtime.tune.job_deciders import JobDeciders, MakeEstimator
from slackwater.runtime.tune.record.contract import SlackPolicy
from slackwater.runtime.tune.record.paths import Paths, measured_ns
from slackwater.runtime.tune.record.tuning_record import TuningRecord

__all__ = [
    "HOP_NS",
    "GuardedPolicies",
    "GuardedPolicy",
    "JobDeciders",
    "MakeEstimator",
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
