"""Errors of a pattern that needs more than `most_kept_rows`."""

from __future__ import annotations

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.operators.pattern.step import PatternStep


def too_many_rows(step: PatternStep, rows: int, most: int) -> OperatorError:
    """Return the error for more rows than may be held for matches to come."""
    return OperatorError(
        f"step {step.name!r}: {rows:,} rows are held for matches to come, more than "
        f"most_kept_rows={most:,}: its windows or within= are long, or many are open; make them "
        "shorter, let `where=` leave less, add replicas=, or allow more with "
        "limits=sw.Limits(most_kept_rows=…)"
    )


def too_many_matches(step: PatternStep, most: int) -> OperatorError:
    """Return the error for too many rows in the matches of one read."""
    return OperatorError(
        f"step {step.name!r}: the matches that one read makes have more than "
        f"most_kept_rows={most:,} events between them, with selection={step.selection!r}; ask for "
        "fewer with selection='first', skip='next' or matches=, make windows shorter, let `where=` "
        "leave less, or allow more with limits=sw.Limits(most_kept_rows=…)"
    )
