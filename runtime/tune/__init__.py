"""Setting slacks by a deadline: policies, predictors, trigger, hill climbing ([ssg] §5.2)."""

from runtime.tune.contract import SetSlack, SlackPolicy
from runtime.tune.make import make_policy
from runtime.tune.paths import Paths, measured_ns

__all__ = ["Paths", "SetSlack", "SlackPolicy", "make_policy", "measured_ns"]
