"""Verdict on a plan: whether it may run, and notes for its user."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Verdict"]


@dataclass(frozen=True)
class Verdict:
    """Verdict on a plan, made as the plan is prepared (`runtime/prepare`).

    Attributes:
        refusal: reason why it must not run; None if it may run.
        notes: texts that submit and the job's report show.
    """

    refusal: str | None = None
    notes: tuple[str, ...] = ()
