"""Whether a plan may run, and what its user should know before it does."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Verdict"]


@dataclass(frozen=True)
class Verdict:
    """What was found of a plan as it was prepared (`runtime/prepare`).

    Attributes:
        refusal: why it must not run; None: it may.
        notes: what is said at submit, and again by the job's report.
    """

    refusal: str | None = None
    notes: tuple[str, ...] = ()
