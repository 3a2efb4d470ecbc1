"""The switch that delayed hosts hang on: one process that carries Ethernet frames between TAPs.

The kernel here has no netem, so distance is made in user space. Whatever the hosts say to each
other is late by the same time: Ray's own calls, ours, pings. A frame is read as soon as it is
there, stamped with its due time, and written when that has come; frames between two hosts keep
their order. Standard library only, like `supervisor.py`, which forks this.
"""

from __future__ import annotations

import contextlib
import heapq
import mmap
import os
import select
import time
from collections.abc import Sequence

from tests.hosts.system import exact_timers

__all__ = ["MTU", "carry_frames", "mac_address"]

MTU = 65_000  # bytes; the fewer frames, the less this process has to do
FRAME_BYTES = MTU + 64
AT_ONCE = 64  # frames read from one host before the others have their turn
PLUGGED = 1
WAKING_NS = 100_000  # what being woken costs on a virtual machine, on reading and on writing


def mac_address(port: int) -> str:
    """Return the address of the host on that port; its last byte says which it is."""
    return f"02:00:00:00:00:{port:02x}"


def carry_frames(taps: Sequence[int], cable_ns: Sequence[int], plugs: mmap.mmap) -> None:
    """Carry frames between hosts until killed.

    Args:
        taps: one open TAP for each port, read without blocking.
        cable_ns: shape (ports,), what each host's cable adds to a frame that goes through it,
            in either direction; from a to b a frame takes cable_ns[a] + cable_ns[b].
        plugs: one byte for each port; frames from or to a port that is not PLUGGED are lost.
    """
    exact_timers()
    with contextlib.suppress(OSError):  # a container may not allow it; then delays vary more
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    ports = range(len(taps))
    port_of = {tap: port for port, tap in enumerate(taps)}
    others = [[to for to in ports if to != port] for port in ports]
    takes_ns = [[max(0, cable_ns[a] + cable_ns[b] - WAKING_NS) for b in ports] for a in ports]
    under_way: list[tuple[int, int, int, int, bytes]] = []  # (due_ns, number, from, to, frame)
    number = 0  # ties leave in the order of arrival
    read, write, now = os.read, os.write, time.monotonic_ns
    push, pop, wait_for = heapq.heappush, heapq.heappop, select.select
    everybody = list(taps)
    while True:
        wait_s = max(0, under_way[0][0] - now()) / 1e9 if under_way else None
        for tap in wait_for(everybody, (), (), wait_s)[0]:
            port = port_of[tap]
            takes = takes_ns[port]
            for _ in range(AT_ONCE):
                try:
                    frame = read(tap, FRAME_BYTES)
                except BlockingIOError:  # nothing more
                    break
                except OSError:  # the host is gone, and its device with it
                    everybody.remove(tap)
                    break
                at_ns = now()
                to = frame[5]
                if to < len(taps) and not frame[0] & 1:
                    push(under_way, (at_ns + takes[to], number, port, to, frame))
                    number += 1
                else:  # to everybody
                    for each in others[port]:
                        push(under_way, (at_ns + takes[each], number, port, each, frame))
                        number += 1
        at_ns = now()
        while under_way and under_way[0][0] <= at_ns:
            _, _, port, to, frame = pop(under_way)
            if plugs[port] == PLUGGED == plugs[to]:
                with contextlib.suppress(OSError):  # the host is gone
                    write(taps[to], frame)
