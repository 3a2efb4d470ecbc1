"""Orders of a source's rows: by number, or in a buffer (docs/disorder.md)."""

from slackwater.runtime.order import (
    aq_k_slack,
    by_sequence,
    error_within,
    k_slack,
    ldop,
    mp_k_slack,
)

__all__ = ["aq_k_slack", "by_sequence", "error_within", "k_slack", "ldop", "mp_k_slack"]
