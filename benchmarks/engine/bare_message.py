"""A bare message: what ZeroMQ, Python and the system take for a hop, with nothing of the runtime.

```
due ──▶ the sender wakes ──▶ PAIR over a Unix socket ──▶ the receiver wakes ──▶ received
             select, by the time                       select, on the socket's descriptor
```

It stands beside `join-latency`, in the same run and over the same hops. *One slot*: a process sends
to itself. *Three nodes*: one process sends to another, as a source's slot does to the join's. The
processes are children of their own, as slots are, and sleep as slots do: `ChannelPoller`, timers
sharpened. What counts is the time from when a message was due until Python has it.

`python -m benchmarks.engine.bare_message ROLE FOLDER` is such a child.
"""

from __future__ import annotations

import gc
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import zmq

from benchmarks.frame import check
from slackwater.actors.wire.waiting import ChannelPoller, sharpen_timers

Ints = npt.NDArray[np.int64]

ROLES = {"one slot": ("both",), "three nodes": ("receive", "send")}
"""{place: the processes that a message passes}, the receiver's first."""
BYTES = 128  # about those of our frame of one row
LEAD_S = 0.3  # from the order to start until the first moment from which messages are due
PAUSE_S = 0.05  # between two paces
LOST_S = 5.0  # a message that has not come by then, behind the last that was due, will not
READY_S = 30.0  # for a child to be there
DUE, RECEIVED, SOCKET = "due.npy", "received.npy", "s"


class Pair:
    """One end of a bare channel, as a `ChannelPoller` wants it."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self.socket = socket

    @property
    def may_hide(self) -> bool:
        """Nobody keeps account of that here: it is asked before each wait."""
        return True

    @may_hide.setter
    def may_hide(self, may_hide: bool) -> None:
        del may_hide


def bare_messages(place: str, paces: Mapping[str, Ints], folder: Path) -> dict[str, Ints]:
    """Send messages, each when it is due; return the time from due to received of each.

    Args:
        place: of `ROLES`.
        paces: {name: when its messages are due, ns, in order, from any moment on}; one pace runs
            behind the other.
        folder: a new one, of a short path: a Unix socket lies there for a while.

    Returns:
        {name: times of shape (messages,), ns, in order}; no message is lost.
    """
    folder.mkdir()
    due_ns, borders = _one_after_the_other(list(paces.values()))
    np.save(folder / DUE, due_ns)
    children = [_child(role, folder) for role in ROLES[place]]
    try:
        for child in children:
            check(_says(child, READY_S) == "ready", f"no process for bare messages, {place}")
        began_ns = time.monotonic_ns() + round(LEAD_S * 1e9)
        for child in children:
            assert child.stdin is not None
            child.stdin.write(f"{began_ns}\n".encode())
            child.stdin.flush()
        within_s = LEAD_S + int(due_ns[-1]) / 1e9 + LOST_S + READY_S
        for child in children:
            check(child.wait(within_s) == 0, f"bare messages, {place}: a process failed")
    finally:
        for child in children:
            child.kill()
            child.communicate()
    received_ns = np.load(folder / RECEIVED)
    check(len(received_ns) == len(due_ns), f"bare messages, {place}: some were lost")
    took = np.split(received_ns - due_ns - began_ns, borders)
    return dict(zip(paces, took, strict=True))


def _one_after_the_other(paces: Sequence[Ints]) -> tuple[Ints, list[int]]:
    """Return all messages from 0 on, and the places where the second and later paces begin."""
    starts_ns, borders, moved = 0, [], []
    for due_ns in paces:
        moved.append(due_ns - due_ns[0] + starts_ns)
        starts_ns = int(moved[-1][-1]) + round(PAUSE_S * 1e9)
        borders.append(sum(map(len, moved)))
    return np.concatenate(moved), borders[:-1]


def _child(role: str, folder: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "benchmarks.engine.bare_message", role, str(folder)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603


def _says(child: subprocess.Popen[bytes], within_s: float) -> str:
    assert child.stdout is not None
    if not select.select([child.stdout], (), (), within_s)[0]:
        return ""
    return child.stdout.readline().decode().strip()


# -- in the children ---------------------------------------------------------------------------


def main(role: str, folder: Path) -> None:
    """Be one of the processes; write down when each message came."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    endpoint = f"ipc://{folder / SOCKET}"
    due_ns = np.load(folder / DUE)
    ends: dict[str, Pair] = {}
    if role != "send":
        ends["in"] = Pair(_socket(context))
        ends["in"].socket.bind(endpoint)
    if role != "receive":
        ends["out"] = Pair(_socket(context))
        ends["out"].socket.connect(endpoint)
    gc.collect()
    gc.freeze()  # as a slot does
    sharpen_timers()
    print("ready", flush=True)
    began_ns = int(sys.stdin.readline())
    times_ns = (due_ns + began_ns).tolist()
    deadline_ns = times_ns[-1] + round(LOST_S * 1e9)
    if role == "send":
        _send(ends, times_ns)
    else:
        due = times_ns if role == "both" else []
        received = _run(ends, due, count=len(times_ns), deadline_ns=deadline_ns)
        np.save(folder / RECEIVED, np.array(received, dtype=np.int64))
    for end in ends.values():
        end.socket.close(linger=round(LOST_S * 1_000))
    context.term()


def _socket(context: zmq.Context[zmq.Socket[bytes]]) -> zmq.Socket[bytes]:
    socket = context.socket(zmq.PAIR)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RCVHWM, 0)
    return socket


def _send(ends: dict[str, Pair], times_ns: Sequence[int]) -> None:
    poller, socket, message = ChannelPoller(ends), ends["out"].socket, bytes(BYTES)
    for due_ns in times_ns:
        while (rest_ns := due_ns - time.monotonic_ns()) > 0:
            poller.wait(rest_ns / 1e9)
        socket.send(message, zmq.NOBLOCK)


def _run(
    ends: dict[str, Pair], times_ns: Sequence[int], *, count: int, deadline_ns: int
) -> list[int]:
    """Receive, and send what is due in between, in one thread; return when each message came."""
    poller, message = ChannelPoller(ends), bytes(BYTES)
    received: list[int] = []
    sent = 0
    while len(received) < count and (now_ns := time.monotonic_ns()) < deadline_ns:
        if sent < len(times_ns) and times_ns[sent] <= now_ns:
            ends["out"].socket.send(message, zmq.NOBLOCK)
            sent += 1
            continue
        until_ns = times_ns[sent] if sent < len(times_ns) else deadline_ns
        poller.wait((until_ns - now_ns) / 1e9)
        while "in" in poller.ready():
            ends["in"].socket.recv(zmq.NOBLOCK)
            received.append(time.monotonic_ns())
    return received


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
