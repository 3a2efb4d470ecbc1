"""Check of a snapshot that a slot is to continue from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from slackwater.runtime.errors import SettingError
from slackwater.runtime.expressions.nearest import listed

__all__ = ["VERSION", "check_snapshot"]

VERSION = 12
"""Of `Slot.snapshot`; another one whenever what is in it changes its meaning."""


class _Slot(Protocol):
    name: str

    @property
    def stages(self) -> Mapping[str, Any]: ...

    @property
    def channels(self) -> Mapping[str, Any]: ...


def check_snapshot(state: Mapping[str, Any], *, slot: _Slot) -> None:
    """Check that a slot can go on from a snapshot.

    Raises:
        SettingError: it is of other stages or channels, or of another version.
    """
    who = f"slot {slot.name!r} cannot go on from this snapshot"
    if state.get("version") != VERSION:
        raise SettingError(
            f"{who}: it is of version {state.get('version')!r}, and this release reads version "
            f"{VERSION}; go on with the release that made it, or start the flow from its beginning"
        )
    for what, own in (("stages", slot.stages), ("channels", slot.channels)):
        if set(state[what]) != set(own):
            raise SettingError(
                f"{who}: it has the {what} {listed(state[what])}, and the slot has "
                f"{listed(own)}; go on with the flow and the placement that it was made of"
            )
