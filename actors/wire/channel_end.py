"""What both ends of a channel share: one ZeroMQ socket, read and written without waiting.

Used by `actors/wire/channel.py` alone, which says what travels.
"""

from __future__ import annotations

import zmq
from zmq import zmq_poll

from slackwater.actors.wire.frames import HEADER, FrameCodec
from slackwater.runtime.errors import FrameError

Context = zmq.Context[zmq.Socket[bytes]]

HEARTBEAT_TIMEOUT_S = 4.0
"""A peer silent for so long, and a fifth more between two heartbeats, is lost. libzmq's own
thread answers heartbeats, however busy the process; only a dead host, a cut link or a frozen
process is silent longer than that."""
LINGER_S = 5.0
"""How long a context that is terminated stays to flush what a closed end had to send."""
PIECE_BYTES = 2**19
"""Over TCP a longer frame goes in pieces of this length, the last one shorter. libzmq takes so much
from each connection that has not shown a key yet, too: who has none makes us hold no more."""
_CURVE_BYTES = 64  # what encryption may add to a piece, rounded up
AT_ONCE = 64
"""Frames that are read, at most, before something else has its turn."""
# As plain numbers: each use of pyzmq's enumerations costs a microsecond, and these are used for
# every message.
_EVENTS, _POLLIN, _NOBLOCK = int(zmq.EVENTS), int(zmq.POLLIN), int(zmq.NOBLOCK)


class End:
    """What a `Sender` and a `Receiver` share.

    Attributes:
        messages, rows, bytes: data sent or received so far; bytes with headers.
        refused: frames refused so far, because they were malformed or out of turn.
        last_refusal: why the latest of them was; None so far.
        may_hide: messages may lie in the socket of which its descriptor does not tell
            (`actors/wire/waiting.py`).
    """

    def __init__(self, codec: FrameCodec, context: Context, heartbeat_timeout_s: float) -> None:
        self.messages = 0
        self.rows = 0
        self.bytes = 0
        self.refused = 0
        self.last_refusal: str | None = None
        self._codec = codec
        self._is_connected = False
        self._is_lost = False
        self._is_closed = False
        self._socket = context.socket(zmq.PAIR)
        self._polled = [(self._socket, _POLLIN)]
        self.may_hide = True
        timeout_ms = max(1, round(heartbeat_timeout_s * 1_000))
        for option, value in (
            (zmq.SNDHWM, 0),
            (zmq.RCVHWM, 0),
            (zmq.HEARTBEAT_IVL, max(1, timeout_ms // 5)),
            (zmq.HEARTBEAT_TIMEOUT, timeout_ms),
            (zmq.MAXMSGSIZE, codec.max_bytes + HEADER.size),
        ):
            self._socket.setsockopt(option, value)
        self._whole = codec.max_bytes + HEADER.size + 1  # a frame so long comes in pieces: none
        self._pieces: list[bytes] = []  # of a frame whose last one is still to come

    @property
    def socket(self) -> zmq.Socket[bytes]:
        """The ZeroMQ socket, to be waited on; reading it is for this end alone."""
        return self._socket

    @property
    def is_connected(self) -> bool:
        """Whether the other end has said hello, with our columns."""
        return self._is_connected

    def close(self, *, linger_s: float = LINGER_S) -> None:
        """Close this end. What was sent is flushed while the context is being terminated.

        Args:
            linger_s: for at most so many seconds; 0 throws it away (a job that failed).
        """
        if not self._is_closed:
            self._is_closed = True
            self._socket.close(linger=0 if self._is_lost else round(linger_s * 1_000))

    def _use_pieces(self) -> None:
        """Be ready for TCP, the socket being neither bound nor connected yet."""
        self._whole = min(PIECE_BYTES, self._whole)
        self._socket.setsockopt(zmq.MAXMSGSIZE, self._whole + _CURVE_BYTES)

    def _can_do(self) -> int:
        """Return whether it can be read (POLLIN), and written to (POLLOUT)."""
        events: int = self._socket.get(_EVENTS)  # type: ignore[assignment]  # a number, of this one
        self.may_hide = bool(events & _POLLIN)
        return events

    def _has_more(self) -> bool:
        # Quicker than to get an option, for which pyzmq looks up what it is.
        self.may_hide = bool(zmq_poll(self._polled, 0))
        return self.may_hide

    def _read(self, most: int) -> list[bytes]:
        """Return the frames that are there; look at so many messages (>= 1) at most."""
        frames = []
        self.may_hide = True
        try:
            while most:
                most -= 1
                # A message of several parts comes as so many frames: each must stand for itself.
                frame = self._socket.recv(_NOBLOCK)
                if self._pieces or len(frame) >= self._whole:
                    whole = self._joined(frame)
                    if whole is None:
                        continue
                    frame = whole
                frames.append(frame)
                # To ask costs a third of what zmq.Again does, and most often one frame is all. Who
                # reads one at a time is not asked for: it is a quarter of all that reading costs.
                if not most or not self._has_more():
                    break
        except zmq.Again:
            self.may_hide = False
        return frames

    def _joined(self, piece: bytes) -> bytes | None:
        """Return the frame that this piece is the last of; None: more of it is to come.

        One that is longer than a frame may be is kept so far, and is refused when it has ended.
        """
        if len(self._pieces) * self._whole <= self._codec.max_bytes + HEADER.size:
            self._pieces.append(piece)
        if len(piece) >= self._whole:
            return None
        frame = b"".join(self._pieces)
        self._pieces = []
        return frame

    def _put(self, frame: bytes) -> bool:
        self.may_hide = True  # to send may take note of what has come
        try:
            if len(frame) >= self._whole:
                view, end = memoryview(frame), len(frame) // self._whole * self._whole
                for at in range(0, end, self._whole):
                    self._socket.send(view[at : at + self._whole], _NOBLOCK)
                frame = frame[end:]  # perhaps nothing, which says that this was all
            self._socket.send(frame, _NOBLOCK)
        except zmq.Again:  # there is no peer
            return False
        return True

    def _refuse(self, problem: FrameError) -> None:
        self.refused += 1
        self.last_refusal = str(problem)
