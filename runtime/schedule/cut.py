"""A slot's cut: its snapshot at a mark, and what still belongs to it.

```
        mark n comes first on a ──▶ snapshot
a  … 4 5 │n 6 7
b  … 2 3 4 5 │n 6     4 and 5 had been sent before their sender's cut: they belong to this one
```
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from slackwater.runtime.model import Message

__all__ = ["STAYING", "Cut"]

STAYING = 3
"""Number of the newest complete checkpoints of a flow that stay: a restore may ask for each."""


class Cut:
    """The cut of a slot's streams, while messages of it may still arrive.

    Args:
        number: number of the checkpoint.
        state: `Slot.snapshot` at the mark.
        awaited: channels from other slots on which the mark is yet to come.

    Attributes:
        messages: {channel: messages that arrived after the snapshot, before the mark}.
    """

    def __init__(self, number: int, state: dict[str, Any], awaited: Collection[str]) -> None:
        self.number, self.state = number, state
        self.messages: dict[str, list[Message]] = {}
        self._awaited = set(awaited)

    @property
    def is_complete(self) -> bool:
        """Whether the mark, or the end, has come on each channel."""
        return not self._awaited

    def arrived(self, channel: str, message: Message) -> None:
        """Add a message that arrives before the mark of its channel."""
        if channel not in self._awaited:
            return
        self.messages.setdefault(channel, []).append(message)
        if message.progress.is_end:
            self._awaited.discard(channel)

    def close(self, channel: str) -> None:
        """Take note that the mark has come on a channel."""
        self._awaited.discard(channel)
