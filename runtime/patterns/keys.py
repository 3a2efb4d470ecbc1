"""The matcher of a key."""

from __future__ import annotations

from typing import TypeAlias

from slackwater.runtime.patterns.drifting import DriftMatcher
from slackwater.runtime.patterns.matcher import KeyMatcher
from slackwater.runtime.patterns.reach import ReachMatcher
from slackwater.runtime.patterns.scopes import Within
from slackwater.runtime.patterns.settings import HoldsOfTurns, Settings
from slackwater.runtime.patterns.windowed import WindowMatcher

AnyMatcher: TypeAlias = KeyMatcher | DriftMatcher
"""The matcher of a key."""


def matcher_of(settings: Settings, holds: HoldsOfTurns) -> AnyMatcher:
    """Return a matcher for a key; see `KeyMatcher`."""
    if settings.drift is not None:
        return DriftMatcher(settings.drift, holds, settings.limit)
    matcher = ReachMatcher if isinstance(settings.scope, Within) else WindowMatcher
    return matcher(settings, holds)
