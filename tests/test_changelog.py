"""The changelog: figures of the code that it states."""

from __future__ import annotations

from pathlib import Path

from slackwater.actors.wire import frames
from slackwater.runtime.schedule import slot, stimulus_log

CHANGELOG = Path(__file__).resolve().parent.parent / "CHANGELOG.md"


def test_the_changelog_names_the_versions_of_what_is_kept_and_sent() -> None:
    line = (
        f"- Snapshots of slots are of version {slot.VERSION}, frames of version {frames.VERSION}, "
        f"logs of version {stimulus_log.VERSION}."
    )
    assert line in CHANGELOG.read_text().splitlines()
