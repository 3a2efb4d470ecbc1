"""What a cluster's wire makes of messages, for simulations: each is encoded, and decoded."""

from __future__ import annotations

from collections.abc import Callable

from slackwater.actors.wire.frames import FrameCodec
from slackwater.runtime.model import Message
from slackwater.runtime.plan.plan import Channel

_ANY_BYTES = 2**40
"""Whoever sends cuts what is too long for a frame; here nothing is."""


def through_frames(channel: Channel) -> Callable[[Message], Message]:
    """Return what makes frames of a channel's messages, and messages of these."""
    codec = FrameCodec(
        channel.schema,
        columns=channel.schema.names,
        row_fields=channel.row_fields,
        may_be_late=channel.may_be_late,
        max_bytes=_ANY_BYTES,
    )

    def carried(message: Message) -> Message:
        return codec.decode(codec.encode(message, sent_at_ns=0))[0]

    return carried
