"""Check the new names of steps that a user gives."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from slackwater.runtime.errors import SettingError
from slackwater.runtime.nearest import choices, listed

__all__ = ["check_renamed"]


def check_renamed(renamed: Mapping[str, str], steps: Collection[str]) -> None:
    """Check names of steps that users give, {old: new}, before a checkpoint is known.

    Args:
        renamed: new name of each step that has one.
        steps: names of the flow's steps now.

    Raises:
        SettingError: a new name is no step, an old one still is, or two have the same new name.
    """
    for old, new in renamed.items():
        if new not in steps:
            raise SettingError(
                f"renamed={{{old!r}: {new!r}}}: the flow has no step {new!r}; {choices(new, steps)}"
            )
        if old in steps:
            raise SettingError(
                f"renamed={{{old!r}: {new!r}}}: the flow still has a step {old!r}; omit it, or "
                "give that another name first: stop the job, and start it once with each name"
            )
    if len({*renamed.values()}) < len(renamed):
        raise SettingError(
            f"renamed= gives two steps one name ({listed(renamed.values())}); name each step once"
        )
