"""Share one ZeroMQ socket's code between both ends: read and write without waiting.

Only `actors/wire/channel.py` uses it; that file says what travels.
"""

from __future__ import annotations

import zmq
from zmq import zmq_poll

from slackwater.actors.wire.frames import HEADER, FrameCodec
from slackwater.runtime.errors import FrameError

Context = zmq.Context[zmq.Socket[bytes]]

HEARTBEAT_TIMEOUT_S = 4.0
"""A peer that is silent for longer, and up to a tenth more, is lost, unless its end has another
limit. libzmq's own thread answers heartbeats, however busy the process is. Only a dead host, a cut
link or a process that stands still is silent for longer."""
HEARTBEATS = 40
"""Heartbeats within that time. An end waits for one more: so the supervisor of a node, which looks
as often, notices a process that stands still before its peers do."""
LINGER_S = 5.0
"""How long a terminated context waits to flush the frames of a closed end."""
PIECE_BYTES = 2**19
"""Over TCP a longer frame travels in pieces of this length, the last one shorter. libzmq buffers as
much of each connection that has not shown a key yet, and no more."""
_CURVE_BYTES = 64  # what encryption may add to a piece, rounded up
AT_ONCE = 64
"""Most frames that are read before other work has its turn."""
# Plain numbers: each use of pyzmq's enumerations costs a microsecond, and these serve
# every message.
_EVENTS, _POLLIN, _NOBLOCK = int(zmq.EVENTS), int(zmq.POLLIN), int(zmq.NOBLOCK)


class End:
    """End of a channel; base of `Sender` and `Receiver`.

    Attributes:
        messages, rows, bytes: data sent or received so far; bytes with headers.
        refused: frames refused so far, because they were malformed or out of turn.
        last_refusal: reason why the latest frame was refused; None if none was.
        may_hide: messages may lie in the socket that its descriptor does not announce
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
        gap_ms = max(1, timeout_ms // HEARTBEATS)
        for option, value in (
            (zmq.SNDHWM, 0),
            (zmq.RCVHWM, 0),
            (zmq.HEARTBEAT_IVL, gap_ms),
            (zmq.HEARTBEAT_TIMEOUT, timeout_ms + gap_ms),
            (zmq.MAXMSGSIZE, codec.max_bytes + HEADER.size),
        ):
            self._socket.setsockopt(option, value)
        self._whole = codec.max_bytes + HEADER.size + 1  # longer than any frame: no pieces
        self._pieces: list[bytes] = []  # of a frame whose last piece is still to come

    @property
    def socket(self) -> zmq.Socket[bytes]:
        """The ZeroMQ socket, to wait on; only this end may read it."""
        return self._socket

    @property
    def is_connected(self) -> bool:
        """Whether the other end has said hello, with our columns."""
        return self._is_connected

    def close(self, *, linger_s: float = LINGER_S) -> None:
        """Close this end; the context flushes sent frames while it terminates.

        Args:
            linger_s: longest time to flush, in seconds; 0 drops the frames (a failed job).
        """
        if not self._is_closed:
            self._is_closed = True
            self._socket.close(linger=0 if self._is_lost else round(linger_s * 1_000))

    def _use_pieces(self) -> None:
        # For TCP, before the socket is bound or connected.
        self._whole = min(PIECE_BYTES, self._whole)
        self._socket.setsockopt(zmq.MAXMSGSIZE, self._whole + _CURVE_BYTES)

    def _can_do(self) -> int:
        """Return the socket's events: readable (POLLIN), writable (POLLOUT)."""
        events: int = self._socket.get(_EVENTS)  # type: ignore[assignment]  # a number, of this one
        self.may_hide = bool(events & _POLLIN)
        return events

    def _has_more(self) -> bool:
        # Quicker than an option, whose type pyzmq looks up.
        self.may_hide = bool(zmq_poll(self._polled, 0))
        return self.may_hide

    def _read(self, most: int) -> list[bytes]:
        """Return the frames that have arrived, of at most `most` (>= 1) messages."""
        frames = []
        self.may_hide = True
        try:
            while most:
                most -= 1
                # A message of several parts arrives as several frames: each must stand alone.
                frame = self._socket.recv(_NOBLOCK)
                if self._pieces or len(frame) >= self._whole:
                    whole = self._joined(frame)
                    if whole is None:
                        continue
                    frame = whole
                frames.append(frame)
                # Asking costs a third of what zmq.Again does, and most often one frame is all. A
                # caller that reads one frame at a time is not asked for: asking is a quarter of the
                # reading.
                if not most or not self._has_more():
                    break
        except zmq.Again:
            self.may_hide = False
        return frames

    def _joined(self, piece: bytes) -> bytes | None:
        """Return the frame that ends with this piece; None if pieces are missing.

        Of a frame over the limit only a part is kept; the codec refuses it at its end.
        """
        if len(self._pieces) * self._whole <= self._codec.max_bytes + HEADER.size:
            self._pieces.append(piece)
        if len(piece) >= self._whole:
            return None
        frame = b"".join(self._pieces)
        self._pieces = []
        return frame

    def _put(self, frame: bytes) -> bool:
        self.may_hide = True  # sending may take note of arrived messages
        try:
            if len(frame) >= self._whole:
                view, end = memoryview(frame), len(frame) // self._whole * self._whole
                for at in range(0, end, self._whole):
                    self._socket.send(view[at : at + self._whole], _NOBLOCK)
                frame = frame[end:]  # perhaps empty, which ends the frame
            self._socket.send(frame, _NOBLOCK)
        except zmq.Again:  # no peer
            return False
        return True

    def _refuse(self, problem: FrameError) -> None:
        self.refused += 1
        self.last_refusal = str(problem)
