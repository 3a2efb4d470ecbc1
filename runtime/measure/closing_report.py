"""What closing windows in time has come to, against what was promised."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClosingReport:
    """The windows of one aggregate, or of one of its replicas, that have closed so far.

    Attributes:
        windows: that had a row, when they closed or later.
        early: of these, closed before the policy was sure.
        missed: of these, known to have missed at least one row.
        slack_ns: sum over them of when each closed, by arrivals, less its end; may be negative.
        promised: the share of windows that may miss something; None: none was promised.

    Source: MER and SL of [probslack] Eq. 1, 2.
    """

    windows: int
    early: int
    missed: int
    slack_ns: int
    promised: float | None

    @property
    def missed_share(self) -> float:
        """The share of windows that missed something; 0 of none."""
        return self.missed / self.windows if self.windows else 0.0

    @property
    def mean_slack_ns(self) -> float:
        """How long behind its end a window closed, in the mean; 0 of none."""
        return self.slack_ns / self.windows if self.windows else 0.0
