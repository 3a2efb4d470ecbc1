"""A slot's cut: its snapshot at a mark, and what still belongs to it.

```
        mark n comes first on a ──▶ snapshot
a  … 4 5 │n 6 7
b  … 2 3 4 5 │n 6     4 and 5 had been sent before their sender's cut: they belong to this one
```

What is much of the snapshot is saved in steps after it (`runtime/model/later.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from slackwater.runtime.model import Message
from slackwater.runtime.model.later import Later

__all__ = ["STAYING", "Cut"]


STAYING = 3
"""Number of the newest complete checkpoints of a flow that stay: a restore may ask for each."""


class Cut:
    """The cut of a slot's streams, while messages of it may still arrive.

    Args:
        number: number of the checkpoint.
        state: `Slot.snapshot` at the mark.
        awaited: channels from other slots on which the mark is yet to come.
        later: parts of the state that are not whole yet.
        cpu_ns: clock of the CPU time of the thread that saves these.

    Attributes:
        messages: {channel: messages that arrived after the snapshot, before the mark}.
        early_ns: CPU time of the slot's own work for parts that are whole.
    """

    def __init__(
        self,
        number: int,
        state: dict[str, Any],
        awaited: Collection[str],
        later: Collection[Later] = (),
        cpu_ns: Callable[[], int] = int,
    ) -> None:
        self.number, self.state = number, state
        self._later = [part for part in later if not part.is_done]
        self.messages: dict[str, list[Message]] = {}
        self._awaited = set(awaited)
        self.early_ns = 0
        for part in self._later:
            part.cpu_ns = cpu_ns

    @property
    def is_complete(self) -> bool:
        """Whether each channel has had the mark or its end, and the state is whole."""
        return not self._awaited and not self._later

    @property
    def is_saving(self) -> bool:
        """Whether a part of the state is not whole yet."""
        return bool(self._later)

    def step(self, most: int) -> None:
        """Save more of the state; see `Later.step`."""
        part = self._later[-1]
        part.step(most)
        if part.is_done:
            self._later.pop()
            self.early_ns += part.early_ns

    def give_up(self) -> None:
        """Save no more of the state."""
        while self._later:
            self._later.pop().give_up()

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
