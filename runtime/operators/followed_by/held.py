"""Events wait if they may begin a match, or end one to come."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import START_NS, Batch, BoolArray, concat_batches
from slackwater.runtime.model.divided import keep
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.followed_by.before import Events, Moments, not_done


class Held:
    """Rows in the order of the stream, with what is known of each.

    Attributes:
        rows: rows, with the columns that matches need; None: no row has come yet.
        events: the key, time, bound and place in the stream of each.
        may_begin: shape (rows,): whether it matches `first`.
        may_follow: shape (rows,): whether it matches `then`.
        done: the earliest end of the events that surely follow each.
    """

    STATE = Fields(
        Field("events", of=OWNER),
        Field("rows", by="events"),
        Field("may_begin", by="events"),
        Field("may_follow", by="events"),
        Field("done", by="events"),
    )

    def __init__(self) -> None:
        none = np.empty(0, dtype=np.int64)
        self.rows: Batch | None = None
        self.events = Events(none, none, none, none)
        self.may_begin = self.may_follow = np.empty(0, dtype=np.bool_)
        self.done = not_done(0)

    def __len__(self) -> int:
        return len(self.events.times)

    def append(
        self, rows: Batch, events: Events, may_begin: BoolArray, may_follow: BoolArray
    ) -> None:
        """Add events that come after all others in the stream."""
        self.rows = rows if self.rows is None else concat_batches([self.rows, rows])
        both = zip(self.events, events, strict=True)
        self.events = Events(*(np.concatenate(pair) for pair in both))
        self.may_begin = np.concatenate([self.may_begin, may_begin])
        self.may_follow = np.concatenate([self.may_follow, may_follow])
        done = zip(self.done, not_done(len(rows)), strict=True)
        self.done = Moments(*(np.concatenate(pair) for pair in done))

    def forget(self, passed_ns: int, *, within_ns: int, most_ns: int) -> None:
        """Forget events that can match no event from now on, by their clocks.

        Args:
            passed_ns: no event that follows is older by its clock.
            within_ns: how far apart the events of a match may be.
            most_ns: how far clocks may be off.
        """
        if self.rows is None or passed_ns == START_NS:
            return
        times, bounds = self.events.times, self.events.bounds
        # Sums stay in 64 bits: times are within 2**62, all lengths within 2**61.
        is_near = passed_ns - most_ns <= times + (within_ns + bounds)
        self.may_begin &= is_near & (self.done.at_ns >= passed_ns - most_ns)
        self.may_follow &= (passed_ns - most_ns <= times + bounds) & (most_ns > 0)
        kept = np.flatnonzero(self.may_begin | self.may_follow)
        if len(kept) < len(self):
            keep(self, "events", kept)

    def clear(self) -> None:
        """Forget all."""
        keep(self, "events", np.empty(0, dtype=np.int64))
