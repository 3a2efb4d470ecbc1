"""Which matcher a key gets."""

from __future__ import annotations

from runtime.patterns.matcher import KeyMatcher
from runtime.patterns.reach import ReachMatcher
from runtime.patterns.scopes import Within
from runtime.patterns.settings import HoldsOfTurns, Settings
from runtime.patterns.windowed import WindowMatcher


def matcher_of(settings: Settings, holds: HoldsOfTurns) -> KeyMatcher:
    """Return a matcher for a key; see `KeyMatcher`."""
    made = ReachMatcher if isinstance(settings.scope, Within) else WindowMatcher
    return made(settings, holds)
