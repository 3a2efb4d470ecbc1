"""Actions of a slot for its host; its account of slices and rests.

Tuples with names: a slot makes some of them for each slice, and a frozen dataclass takes four times
as long to make.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from slackwater.runtime.model import Batch, Message
from slackwater.runtime.plan.plan import Channel
from slackwater.runtime.schedule.node import Handed

__all__ = ["Action", "Egress", "Grant", "Rest", "Send", "Slice", "Work"]


class Send(NamedTuple):
    """Carry a message to a stage in another slot."""

    channel: Channel
    message: Message


class Grant(NamedTuple):
    """Give a channel's sender, in another slot, credit back."""

    channel: Channel
    rows: int


class Egress(NamedTuple):
    """Write results (None if none exists) at a sink; at the end, close it."""

    stage: str
    batch: Batch | None
    is_end: bool


Action: TypeAlias = Send | Grant | Egress


class Rest(NamedTuple):
    """Rest of a slot without work: how long it may sleep if nothing comes."""

    until_ns: int | None
    """None if only what comes from outside can give it work."""
    is_guess: bool
    """Whether a poll is due then that may find nothing, and nothing else."""


class Work(NamedTuple):
    """Work of a stage in one slice.

    Attributes:
        sends: messages that leave, each with its channel.
        egress: rows that a sink writes; None if it has nothing to write.
        results: rows that leave, on however many channels.
        handed: rows that its node handed over, and their account.
    """

    sends: Sequence[tuple[Channel, Message]]
    egress: Egress | None
    results: int
    handed: Handed


class Slice(NamedTuple):
    """Slice of work that was done: its stage, its rows, and the host's actions."""

    stage: str
    rows: int
    actions: list[Action]
    began_ns: int
    comparisons: int = 0
    """Pairs that a join compared."""
    released: int = 0
    """Rows that went on to the operator; a gate may take rows in with one slice, and let them go
    with many others."""
    results: int = 0
    """Rows that left the stage, whether to another slot or within its own."""
    passed_over: int | None = None
    """Released rows that its operator did not look at; None if it looks at all."""
    has_read: bool = False
    """Whether it read input, or polled for it, and handed nothing over."""
    each: tuple[Slice, ...] = ()
    """Slice of each source, where rows of several were left out in one go; empty otherwise."""

    @property
    def parts(self) -> tuple[Slice, ...]:
        """The slice of each stage."""
        return self.each or (self,)

    def shares(self, took_ns: int) -> list[tuple[Slice, int]]:
        """Return each stage's slice, and its share of the time, by rows."""
        return [(part, took_ns * part.rows // self.rows) for part in self.each] or [(self, took_ns)]
