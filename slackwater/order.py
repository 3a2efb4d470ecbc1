"""Orders of a source's rows: by number, or in a buffer (docs/disorder.md)."""

from slackwater.runtime.order.aq_k_slack import aq_k_slack
from slackwater.runtime.order.coverage import error_within
from slackwater.runtime.order.k_slack import k_slack, mp_k_slack
from slackwater.runtime.order.ldop import ldop
from slackwater.runtime.order.sequence import by_sequence

__all__ = ["aq_k_slack", "by_sequence", "error_within", "k_slack", "ldop", "mp_k_slack"]
