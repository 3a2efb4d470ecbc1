"""Hold a slot's ends of its channels to other slots.

Moves of stages replace some ends:

```
bind ─▶ connect ─▶ … messages, grants … ─▶ (retire ─▶ bind ─▶ connect, for channels that
                                            join other slots from now on)
```

Used only from the slot's loop, once it runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import zmq

from slackwater.actors.slot.peers import codec_of
from slackwater.actors.wire.channel import ChannelKeys, ChannelPoller, Receiver, Sender, Waker
from slackwater.actors.wire.frames import MAX_BYTES, FrameTooLongError
from slackwater.actors.wire.local_sockets import SCHEME, host_identity
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import FrameError
from slackwater.runtime.measure.report import ChannelReport
from slackwater.runtime.model import NS_PER_SECOND, Mark, Message
from slackwater.runtime.plan.plan import Channel, Stage
from slackwater.runtime.schedule import Slot
from slackwater.runtime.shown import shown

__all__ = ["ChannelEnds", "Passed", "is_drained"]

FIRST_WAIT_S = 0.5
"""Wait for a connection before another is asked for: half of the time after which the system sends
a lost packet again."""


class Passed(NamedTuple):
    """Traffic through an end of a channel; equal at both if nothing is under way."""

    messages: int
    granted: int


class ChannelEnds:
    """The ends of one slot's channels.

    Args:
        keys: keys of the job.
        context: context of the process.
        host: address of this node.
        waker: ends a wait for the ends.
        came: called with a channel and the mark that has come on it.
        lost_ns: silence after which the other end is lost; see `Limits.lost_ns`.

    Attributes:
        receivers, senders: {channel: its end here}.
        poller: the loop's poller.
    """

    def __init__(
        self,
        *,
        keys: ChannelKeys,
        context: zmq.Context[zmq.Socket[bytes]],
        host: str,
        waker: Waker,
        came: Callable[[str, Mark], None] = lambda *_: None,
        lost_ns: int = Limits.lost_ns,
    ) -> None:
        self._lost_s, self._came = lost_ns / NS_PER_SECOND, came
        self._keys, self._context, self._host, self._waker = keys, context, host, waker
        self.receivers: dict[str, Receiver] = {}
        self.senders: dict[str, Sender] = {}
        self._granted: dict[str, int] = {}  # {channel: rows granted by, or to, this end}
        self._retired: list[Receiver | Sender] = []
        self.poller = ChannelPoller({}, waker=waker)

    def bind(
        self,
        stages: Iterable[Stage],
        hosts: Mapping[str, str | None],
        *,
        over: Collection[str] = (),
    ) -> dict[str, str]:
        """Listen on every channel from another slot that has no end here yet.

        Args:
            stages: stages of the slot.
            hosts: {stage: identity of the host that it runs on}.
            over: channels whose stream has ended: they need no end.

        Returns:
            {channel: its endpoint}, of the new ends.
        """
        here = host_identity(self._host)
        own = {stage.name: stage for stage in stages}
        bound: dict[str, str] = {}
        for channel in [c for stage in own.values() for c in stage.inputs]:
            if channel.source in own or channel.name in self.receivers or channel.name in over:
                continue
            self.receivers[channel.name] = receiver = Receiver(
                keys=self._keys,
                codec=codec_of(channel),
                context=self._context,
                bind_host=self._host,
                is_local=here is not None and hosts[channel.source] == here,
                heartbeat_timeout_s=self._lost_s,
            )
            bound[channel.name] = receiver.endpoint
        return bound

    def connect(
        self,
        stages: Iterable[Stage],
        endpoints: Mapping[str, str],
        *,
        asks_again: bool = False,
    ) -> None:
        """Connect every channel to another slot.

        Args:
            stages: stages of the slot.
            endpoints: {channel: its receiver's endpoint}.
            asks_again: whether to wait for connections between hosts, and ask again for those that
                are not made: a link may have been cut, and be mended meanwhile.
        """
        new = [
            channel
            for stage in stages
            for channel in stage.outputs
            if channel.name in endpoints and channel.name not in self.receivers
        ]
        for channel in new:
            self.senders[channel.name] = self._sender(channel, endpoints[channel.name])
        if asks_again:
            between = [c for c in new if not endpoints[c.name].startswith(SCHEME)]
            self._ask_again(between, endpoints)
        for end in self._retired:  # by now no slot polls the other ends
            end.close(linger_s=0)
        self._retired.clear()
        self.poller = ChannelPoller(self.all, waker=self._waker)

    def _sender(self, channel: Channel, endpoint: str) -> Sender:
        return Sender(
            endpoint,
            keys=self._keys,
            codec=codec_of(channel),
            context=self._context,
            heartbeat_timeout_s=self._lost_s,
        )

    def _ask_again(self, channels: list[Channel], endpoints: Mapping[str, str]) -> None:
        """Wait for connections, and ask for others in place of those that are not made.

        Each wait is twice as long as the one before, as the way may be long. After half of the time
        after which a peer counts as lost the rest is left to the system.
        """
        begun_s, wait_s = time.monotonic(), FIRST_WAIT_S
        while channels and time.monotonic() - begun_s < self._lost_s / 2:
            until_s = time.monotonic() + wait_s
            channels = [
                channel
                for channel in channels
                if not self.senders[channel.name].has_connected(max(until_s - time.monotonic(), 0))
            ]
            for channel in channels:
                self.senders[channel.name].close(linger_s=0)
                self.senders[channel.name] = self._sender(channel, endpoints[channel.name])
            wait_s *= 2

    def had_ended(self, channels: Iterable[str]) -> None:
        """Take note of streams that had ended at the checkpoint.

        Their ends do not come again: nothing waits for them, and their peers may be gone.
        """
        ends = self.all
        for name in channels:
            if name in ends:
                ends[name].had_ended()

    @property
    def all(self) -> dict[str, Receiver | Sender]:
        """{channel: its end here}."""
        return {**self.receivers, **self.senders}

    @property
    def is_settled(self) -> bool:
        """Whether all sent frames have arrived, the ends of the streams included."""
        return all(sender.is_settled for sender in self.senders.values())

    @property
    def refused_peers(self) -> int:
        """Connections refused so far."""
        return sum(receiver.refused_peers for receiver in self.receivers.values())

    def mark(self, channels: Iterable[Channel], mark: Mark) -> None:
        """Send a mark on channels to other slots, after all that was sent there."""
        for channel in channels:
            self.senders[channel.name].mark(mark)

    def take_in(self, slot: Slot, now_ns: int) -> None:
        """Deliver received messages and credit to a slot."""
        for name in self.poller.ready():
            if name in self.receivers:
                for message, sent_ns in self.receivers[name].receive(now_ns):
                    if isinstance(message, Message):
                        slot.deliver(name, message, now_ns, link_ns=max(now_ns - sent_ns, 0))
                    else:
                        self._came(name, message)
            else:
                for rows in self.senders[name].poll():
                    self._granted[name] = self._granted.get(name, 0) + rows
                    slot.credit(name, rows)

    def send(self, channel: Channel, message: Message, now_ns: int) -> None:
        """Send a message to the stage in another slot.

        Raises:
            FrameError: a row is too long; names the steps and the column.
        """
        try:
            self.senders[channel.name].send(message, now_ns)
        except FrameTooLongError as problem:
            raise _row_too_long(channel, message) from problem

    def grant(self, channel: Channel, rows: int) -> None:
        """Grant credit back, unless the stream has ended."""
        receiver = self.receivers.get(channel.name)
        if receiver is not None and not receiver.has_ended:
            self._granted[channel.name] = self._granted.get(channel.name, 0) + rows
            receiver.grant(rows)

    def close(self) -> None:
        """Close all ends at once; frames under way are lost."""
        for end in [*self.all.values(), *self._retired]:
            end.close(linger_s=0)

    def unlink(self) -> None:
        """Remove the sockets from the temp folder, in case the job ends before all connect."""
        for receiver in list(self.receivers.values()):
            receiver.unlink()

    # -- as stages move --------------------------------------------------------------------

    def passed(self, channels: Collection[str]) -> dict[str, Passed]:
        """Return the traffic of these channels' ends, {channel: traffic}."""
        return {
            name: Passed(end.messages, self._granted.get(name, 0))
            for name, end in self.all.items()
            if name in channels
        }

    def retire(self, channels: Collection[str], reports: Mapping[str, ChannelReport]) -> None:
        """Stop polling these ends, and add their traffic to the channels' reports.

        They are closed with the next `connect`: until then the slots at their other ends may check
        that we are there.
        """
        for name in channels:
            self._granted.pop(name, None)
            if (sender := self.senders.pop(name, None)) is not None:
                reports[name].bytes_sent += sender.bytes
                self._retired.append(sender)
            if (receiver := self.receivers.pop(name, None)) is not None:
                count_received(reports[name], receiver)
                self._retired.append(receiver)
        self.poller = ChannelPoller(self.all, waker=self._waker)

    def tell_carried(self, channels: Iterable[ChannelReport]) -> None:
        """Add the ends' traffic to the channels' reports."""
        for channel in channels:
            if (sender := self.senders.get(channel.name)) is not None:
                channel.bytes_sent += sender.bytes
            elif (receiver := self.receivers.get(channel.name)) is not None:
                count_received(channel, receiver)


def count_received(channel: ChannelReport, receiver: Receiver) -> None:
    """Add a receiver's measurements to a channel's report."""
    channel.link_ns += receiver.link_ns
    least = [ns for ns in (channel.least_link_ns, receiver.least_link_ns) if ns is not None]
    channel.least_link_ns = min(least, default=None)


def _row_too_long(channel: Channel, message: Message) -> FrameError:
    columns = {} if message.batch is None else message.batch.columns
    sizes = {
        name: max(map(_bytes_of, values.tolist()), default=0) for name, values in columns.items()
    }
    longest = max(sizes, key=lambda name: sizes[name], default="")
    return FrameError(
        f"step {channel.source!r} gave step {channel.target!r} a row too long for the "
        f"channel between them, {MAX_BYTES / 2**20:.0f} MiB; its column {shown(longest)} has a "
        "value of "
        f"{sizes.get(longest, 0):,} bytes; drop or shorten it before, or keep both steps in one "
        "slot (placement=)"
    )


def _bytes_of(value: Any) -> int:
    return len(value) if isinstance(value, bytes) else len(str(value).encode(errors="replace"))


def is_drained(passed: Iterable[Mapping[str, Passed]]) -> bool:
    """Return whether nothing is under way on channels, by the traffic at their ends."""
    expected: dict[str, Passed] = {}
    for slot_passed in passed:
        for name, own in slot_passed.items():
            if expected.setdefault(name, own) != own:
                return False
    return True
