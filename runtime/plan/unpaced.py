"""Note on a deadline over history that is read as fast as possible."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.runtime.model import format_ns
from slackwater.runtime.sources.spec import SourceSpec


def unpaced_note(deadline_ns: int | None, sources: Mapping[str, SourceSpec]) -> str | None:
    """Return a note on a deadline over unpaced sources; None if not needed.

    Args:
        deadline_ns: deadline of the flow; None if none exists.
        sources: {name: settings of the source}.
    """
    fast = [name for name, spec in sources.items() if spec.is_backlog]
    if deadline_ns is None or not fast:
        return None
    are = "has no speed=, and is" if len(fast) == 1 else "have no speed=, and are"
    return (
        f"{', '.join(fast)} {are} read as fast as possible: a row arrives as it is read, whatever "
        f"its arrival column says, and the deadline of {format_ns(deadline_ns)} counts from there "
        "by the clock, by which gates hold rows, too. Where one source is read further ahead of "
        "another than that, order is lost, and windows may miss rows: write speed=1.0 to replay "
        "the rows as they came, or no deadline= to wait for all"
    )
