"""Check the slots at the other ends of a slot's channels; make frame codecs."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.actors.wire.channel import Receiver, Sender
from slackwater.actors.wire.frames import FrameCodec
from slackwater.runtime.errors import FrameError, WorkerDied
from slackwater.runtime.plan.plan import Channel


def look_at_peers(slot: str, ends: Mapping[str, Receiver | Sender]) -> None:
    """Check that the other ends, {channel: its end here}, are there and sound.

    Raises:
        WorkerDied: a peer is lost.
        FrameError: a peer's frame was refused.
    """
    for name, end in ends.items():
        end.look_at_peer()
        if end.is_peer_lost:
            raise WorkerDied.at_other_end(slot, name)
        if end.refused:
            raise FrameError(
                f"slot {slot!r} refused {end.refused} frames on channel {name!r}, and "
                f"cannot know their rows: {end.last_refusal}; the job stops rather than "
                "lose rows"
            )


def lost_peers(ends: Mapping[str, Receiver | Sender]) -> list[str]:
    """Look at the other ends, {channel: its end here}; return the channels of those lost."""
    for end in ends.values():
        end.look_at_peer()
    return [name for name, end in ends.items() if end.is_peer_lost]


def codec_of(channel: Channel) -> FrameCodec:
    """Return a codec for a channel's messages."""
    names = channel.schema.names
    return FrameCodec(
        channel.schema,
        columns=names,
        row_fields=channel.row_fields,
        may_be_late=channel.may_be_late,
    )
