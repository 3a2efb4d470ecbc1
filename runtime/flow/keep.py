"""What joins keep their rows by: what is promised, or what has been released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.errors import SettingError
from runtime.model import format_ns
from runtime.plan.steps import AggregateStep, JoinStep, Keep, SourceStep, Step

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
    silent = _silent_text(steps, step.inputs)
    if step.keep == "promise":
        text = f"rows until all have promised {within} more, so that late ones find all partners"
        return f"{text}; {silent}: as many as most_kept_rows" if silent else text
    text = f"rows until {within} more were released; late ones may miss partners"
    return f"{text} ({silent}; keep='promise' would keep all)" if silent else text


def panes_text(step: AggregateStep, steps: Mapping[str, Step]) -> str:
    """Return how long windows that are corrected stay, for `explain`."""
    silent = _silent_text(steps, step.inputs)
    text = "windows until all have promised their ends"
    return f"{text}; {silent}: of as many rows as most_kept_rows" if silent else text


def _silent_text(steps: Mapping[str, Step], inputs: Sequence[str]) -> str:
    silent = silent_sources(steps, inputs)
    who = f"{', '.join(silent)} promise{'' if len(silent) > 1 else 's'}"
    return f"{who} nothing before its end" if silent else ""
