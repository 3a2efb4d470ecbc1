"""Outputs of a stage: how far they are, and what each channel takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from slackwater.runtime.model import (
    END_NS,
    NO_PROGRESS,
    START_NS,
    Batch,
    Int64Array,
    Message,
    Progress,
)
from slackwater.runtime.model.hashes import KEY_GROUPS, owners_of_rows
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.plan import IDLE_PROMISE_NS, Channel

PAIR = 2
"""Of two owners the places of each take a third of the time of a sort by radix: its counters wait
for each other. It is a twentieth of the slot with the larger source of a dense join."""


class Form(NamedTuple):
    """Form of a channel's rows; replicas of one step have the same.

    Attributes:
        number: number among the forms of the stage's channels.
        names: names of the columns.
        fields: fields of the rows.
    """

    number: int
    names: tuple[str, ...]
    fields: frozenset[str]


def _forms(channels: Sequence[Channel]) -> list[Form]:
    """Return the form of each channel's rows."""
    contents = [(tuple(channel.schema.names), channel.row_fields) for channel in channels]
    numbers = {content: n for n, content in enumerate(dict.fromkeys(contents))}
    return [Form(numbers[content], *content) for content in contents]


class Divided:
    """Rows divided by their owners; one order serves all channels with the same keys.

    Args:
        batch: rows in the order of their stage.
        order: shape (rows,), places of the rows: those of one owner after those of another; None
            if one owns all.
        stops: shape (replicas,), where the rows of each owner stop in that order.
    """

    __slots__ = ("_batch", "_order", "_parts", "_stops")

    def __init__(self, batch: Batch, order: Int64Array | None, stops: list[int]) -> None:
        self._batch, self._order, self._stops = batch, order, stops
        self._parts: dict[int, Batch] = {}  # {form of channels: its columns, in the order}

    @classmethod
    def of(cls, batch: Batch, columns: Sequence[str], groups: tuple[int, ...]) -> Divided:
        """Return a batch divided among replicas, each part in the order of the batch.

        Args:
            batch: rows in the order of their stage.
            columns: names of the key columns.
            groups: number of key groups of each replica.
        """
        rows = len(batch.event_time_ns)
        replicas = len(groups)
        if KEY_GROUPS in groups:
            sole = groups.index(KEY_GROUPS)
            return cls(batch, None, [0] * sole + [rows] * (replicas - sole))
        owner = owners_of_rows([batch.columns[name] for name in columns], rows, groups)
        if replicas == PAIR:
            is_second = owner.view(np.bool_)
            first, second = (~is_second).nonzero()[0], is_second.nonzero()[0]
            return cls(batch, np.concatenate([first, second]), [len(first), rows])
        order = owner.argsort(kind="stable")
        stops = owner.take(order).searchsorted(np.arange(replicas, dtype=np.uint8), side="right")
        return cls(batch, order, stops.tolist())

    def part(self, owner: int, form: Form) -> Batch | None:
        """Return an owner's rows with a channel's columns; None if it has none."""
        start, stop = self._stops[owner - 1] if owner else 0, self._stops[owner]
        if start == stop:
            return None
        rows = self._parts.get(form.number)
        if rows is None:  # once for all channels of this form
            rows = self._batch.part(form.names, form.fields)
            if self._order is not None and len(rows) > 1:
                rows = rows.take(self._order)
            self._parts[form.number] = rows
        return rows.slice(start, stop)


class StageOutputs:
    """The output channels of a stage, and when each last carried something.

    Attributes:
        progress: progress of the stream that leaves by them, whether a channel was told or not;
            without arrivals, of which each is told once.
        tells_arrivals: whether one of them tells how far arrivals have come.
        least_requested_ns: promise that a consumer needs first; END_NS if none was requested.
        owed_ns: when promises that were withheld are due; END_NS if none was withheld.
        withheld: numbers of promises that went with a later message, or not at all, by place.
    """

    STATE = Fields("progress", "_sent_ns", "_told_ns", "_asked_ns", "_moves", "_sent_moves")

    def __init__(self, outputs: Sequence[Channel], *, start_ns: int) -> None:
        # (channel, form of its rows, its place in what follows)
        self._outputs = list(zip(outputs, _forms(outputs), range(len(outputs)), strict=True))
        self._keys = list(
            dict.fromkeys((c.owned.columns, c.owned.groups) for c in outputs if c.owned)
        )
        self._places = {channel.name: at for at, channel in enumerate(outputs)}
        self._need_promises = [at for at, channel in enumerate(outputs) if channel.needs_promises]
        self.tells_arrivals = any("arrivals" in channel.row_fields for channel in outputs)
        self._sent_ns = [start_ns] * len(outputs)
        self._told_ns = [START_NS] * len(outputs)  # promised on it
        self._planned_ns = [channel.promise_gap_ns for channel in outputs]
        self._gap_ns = list(self._planned_ns)
        # Places of channels that hear of each promise, if not at once: a gate waits for it.
        # A shared gate sends its replicas' messages itself.
        self._owing = [
            at
            for at in self._need_promises
            if not outputs[at].promise_gap_ns and outputs[at].replica is None
        ]
        self.owed_ns = END_NS
        self._is_paced = False  # whether promises alone are withheld on one of these
        self._moves = 0  # number of promises so far
        self._sent_moves = [0] * len(outputs)  # of those, the last that was told
        self.withheld = [0] * len(outputs)
        # {place: what a promise alone must reach to be of use}, of channels to stages that ask
        self._asked_ns: dict[int, int] = {}
        self.least_requested_ns = END_NS
        self.progress = NO_PROGRESS
        self._is_mixed = any(channel.is_mixed for channel in outputs)
        self._silent_until_ns = self._until_ns()

    @property
    def promising(self) -> list[Channel]:
        """The channels on which promises alone are sent from here."""
        channels = [self._outputs[at][0] for at in self._need_promises]
        return [channel for channel in channels if channel.replica is None]

    def pace(self, gaps_ns: Mapping[str, int]) -> None:
        """Withhold promises alone for a while after each message.

        Args:
            gaps_ns: {channel: least time between a message and a promise alone}.
        """
        for name, at in self._places.items():
            planned_ns = self._outputs[at][0].promise_gap_ns
            self._planned_ns[at] = max(planned_ns, gaps_ns.get(name, 0))
            if at not in self._asked_ns:
                self._gap_ns[at] = self._planned_ns[at]
        self._is_paced = any(self._planned_ns[at] for at in self._owing)
        self._settle()

    def parts(self, message: Message, now_ns: int) -> Sequence[tuple[Channel, Message]]:
        """Return what goes on each channel: its columns only; nothing it has no use for."""
        batch = message.batch
        promise_ns, _, _, arrived = message.progress
        # A message that tells only arrivals tells nothing to a channel without them.
        is_of_arrivals = arrived is not None and promise_ns == self.progress.promise_ns
        self.reach(message.progress, batch)
        progress = self.progress
        if batch is None and promise_ns < self.silent_below_ns(now_ns):
            return ()
        sends: list[tuple[Channel, Message]] = []
        divided: dict[tuple[tuple[str, ...], tuple[int, ...]], Divided] = {}
        if batch is not None:
            divided = {keys: Divided.of(batch, *keys) for keys in self._keys}
        for channel, form, at in self._outputs:
            sent, part, owned = progress, None, channel.owned
            if batch is not None and owned is not None:
                part = divided[owned.columns, owned.groups].part(owned.replica, form)
            elif batch is not None:
                part = batch.part(form.names, form.fields)
            if arrived is not None and "arrivals" in form.fields:
                sent = progress.with_arrived(arrived)
            elif (
                part is None
                and promise_ns != END_NS
                and self._is_of_no_use(
                    at, now_ns, alone=batch is None, is_of_arrivals=is_of_arrivals
                )
            ):
                continue
            self._sent_ns[at] = now_ns
            self._tell(at)
            sends.append((channel, Message(part, sent)))
        self._settle()
        return sends

    def withheld_by_channel(self) -> dict[str, int]:
        """Return {channel: number of promises that were withheld on it}."""
        return {
            channel.name: count
            for (channel, _, _), count in zip(self._outputs, self.withheld, strict=True)
        }

    def owed(self, now_ns: int) -> list[tuple[Channel, Message]]:
        """Return the promises that were withheld, on channels without a message for long.

        Half a gap is long: so channels are served together, and none waits for more than a gap.
        """
        sends: list[tuple[Channel, Message]] = []
        for at in self._unsaid():
            if 2 * (now_ns - self._sent_ns[at]) >= self._gap_ns[at]:
                self._sent_ns[at] = now_ns
                self._tell(at)
                sends.append((self._outputs[at][0], Message(None, self.progress)))
        self._settle()
        return sends

    def _unsaid(self) -> list[int]:
        """Return the places of channels that are owed a promise."""
        promise_ns = self.progress.promise_ns
        known_ns, requested = self._told_ns, self._asked_ns
        return [at for at in self._owing if known_ns[at] != promise_ns and at not in requested]

    def _tell(self, at: int) -> None:
        """Note that a channel hears of the last promise now."""
        self._told_ns[at] = self.progress.promise_ns
        missed = self._moves - self._sent_moves[at]
        if missed > 1:
            self.withheld[at] += missed - 1
        self._sent_moves[at] = self._moves

    def _settle(self) -> None:
        """Find until when channels need no promise, and when some are owed one."""
        self._silent_until_ns = self._until_ns()
        owed = [self._sent_ns[at] + self._gap_ns[at] for at in self._unsaid()]
        self.owed_ns = min(owed, default=END_NS)

    def silent_below_ns(self, now_ns: int) -> int:
        """Return below which no consumer needs a promise alone; START_NS if one may."""
        return self.least_requested_ns if now_ns < self._silent_until_ns else START_NS

    def reach(self, progress: Progress, batch: Batch | None = None) -> None:
        """Note how far the stream is now, with these rows, told or not."""
        newest_ns = self.progress.newest_ns
        if batch is not None:
            times = batch.event_time_ns
            last_ns = times.item(-1) if len(times) == 1 or not self._is_mixed else int(times.max())
            newest_ns = last_ns if last_ns > newest_ns else newest_ns  # asked for each message
        promise_ns, stimulus_ns, newest_in_ns, arrived = progress
        if promise_ns == END_NS:
            newest_ns = max(newest_ns, newest_in_ns)
        if promise_ns != self.progress.promise_ns:
            self._moves += 1
            if self._is_paced and self._silent_until_ns < self.owed_ns:
                self.owed_ns = self._silent_until_ns  # or later: `owed` finds out
        if newest_in_ns != newest_ns or arrived is not None:
            progress = Progress(promise_ns, stimulus_ns, newest_ns)
        self.progress = progress

    def _is_of_no_use(self, at: int, now_ns: int, *, alone: bool, is_of_arrivals: bool) -> bool:
        """Whether a channel is to get no message without rows.

        Args:
            at: place of the channel.
            now_ns: time by the clock.
            alone: whether no other channel gets rows with it. If one does, all that request
                promises hear of it: else a gate would wait for what has been promised, and give
                others no credit.
            is_of_arrivals: whether the message tells only how far arrivals have come.
        """
        if not self._outputs[at][0].needs_promises or is_of_arrivals:
            return True
        if not alone and self._told_ns[at] == self.progress.promise_ns:
            return True
        return (alone or at not in self._asked_ns) and self._is_too_soon(at, now_ns)

    def _is_too_soon(self, at: int, now_ns: int) -> bool:
        if now_ns - self._sent_ns[at] >= self._gap_ns[at]:
            return False
        return self.progress.promise_ns < self._asked_ns.get(at, END_NS)

    def _until_ns(self) -> int:
        """Return until when channels need only promises that were requested."""
        if self.tells_arrivals:
            return START_NS
        sent_ns, gap_ns = self._sent_ns, self._gap_ns
        return min([sent_ns[at] + gap_ns[at] for at in self._need_promises], default=END_NS)

    # -- requested promises ----------------------------------------------------------------

    def ask(self, channel: str, promise_ns: int) -> Message | None:
        """Send promises alone from this one on, or if nothing was sent for long.

        Returns:
            What has been promised and not said there, if it is as much already.
        """
        self._only_from(self._places[channel], promise_ns)
        return self.unsaid(channel) if promise_ns <= self.progress.promise_ns else None

    def _only_from(self, at: int, promise_ns: int) -> None:
        self._asked_ns[at] = promise_ns
        self.least_requested_ns = min(self._asked_ns.values())
        if self._gap_ns[at] != IDLE_PROMISE_NS:
            self._gap_ns[at] = IDLE_PROMISE_NS
            self._silent_until_ns = self._until_ns()

    def ask_no_more(self, channel: str) -> Message | None:
        """Send promises as planned again; return a promise that was not sent."""
        at = self._places[channel]
        del self._asked_ns[at]
        self._gap_ns[at] = self._planned_ns[at]
        self.least_requested_ns = min(self._asked_ns.values(), default=END_NS)
        self._silent_until_ns = self._until_ns()
        return self.unsaid(channel)

    @property
    def requested(self) -> list[Channel]:
        """The channels on which promises are sent if they are requested."""
        return [self._outputs[at][0] for at in self._asked_ns]

    def unsaid(self, channel: str) -> Message | None:
        """Return the promise of a channel that was not sent, which now is."""
        at = self._places[channel]
        if self._told_ns[at] == self.progress.promise_ns:
            return None
        self._tell(at)
        return Message(None, self.progress)

    def derive(self) -> None:
        """Derive when channels need only promises that were requested."""
        for at, promise_ns in self._asked_ns.items():
            self._only_from(at, promise_ns)
        self._settle()
