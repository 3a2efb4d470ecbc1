"""What joins keep their rows by: what is promised, or what has been released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.errors import SettingError
from runtime.flow.steps import JoinStep, Keep, SourceStep, Step
from runtime.model import format_ns

_KEEPS: tuple[Keep, ...] = ("promise", "slack")


def checked_keep(keep: Any, *, who: str) -> Keep | None:
    """Return `keep` as it was written; None: nobody wrote one.

    Raises:
        SettingError: neither "promise" nor "slack".
    """
    if keep is None or keep in _KEEPS:
        found: Keep | None = keep
        return found
    raise SettingError(
        f"{who}: keep={keep!r} must be 'promise' (rows stay until no partner of theirs can "
        "follow) or 'slack' (until what was released is further past them than within=)"
    )


def default_keep(steps: Mapping[str, Step], inputs: Sequence[str]) -> Keep:
    """Return what a join of these inputs keeps its rows by where nobody wrote it.

    By the promise, unless there is none before an input's end: then all rows would stay till then.
    """
    return "slack" if silent_sources(steps, inputs) else "promise"


def silent_sources(steps: Mapping[str, Step], inputs: Sequence[str]) -> list[str]:
    """Return the sources, of those that feed these inputs, that promise nothing before their end.

    Args:
        steps: all steps upstream, and perhaps others.
        inputs: names of steps.
    """
    reached = list(dict.fromkeys(inputs))
    for name in reached:  # grows while we go
        reached += [one for one in steps[name].inputs if one not in reached]
    return [
        name
        for name in reached
        if isinstance(step := steps[name], SourceStep) and step.source.promises_nothing
    ]


def keep_text(step: JoinStep, steps: Mapping[str, Step]) -> str:
    """Return what a join keeps its rows by, for `explain`."""
    within = format_ns(step.within_ns)
    silent = silent_sources(steps, step.inputs)
    named = f"{', '.join(silent)} promise{'' if len(silent) > 1 else 's'} nothing before its end"
    if step.keep == "promise":
        text = f"rows until all have promised {within} more, so that late ones find all partners"
        return f"{text}; {named}: as many as most_kept_rows" if silent else text
    text = f"rows until {within} more were released; late ones may miss partners"
    return f"{text} ({named}; keep='promise' would keep all)" if silent else text
