"""Strangers who call from many sockets, and say as much on each as libzmq takes in of it."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

CALLS = 300
SHOUTING = """
import socket, struct, sys, time
host, port = sys.argv[1].split(":")
longest, calls = int(sys.argv[2]), int(sys.argv[3])
greeting = b"\\xff" + bytes(8) + b"\\x7f\\x03\\0" + b"CURVE".ljust(20, b"\\0") + bytes(32)
hello = greeting + b"\\x06" + struct.pack(">Q", longest) + b"\\x05HELLO"
noise = bytes(longest - 7)  # all but the last byte, so that it is kept until there is more
def call():
    made = socket.create_connection((host, int(port)), 10, ("127.0.0.2", 0))
    made.setblocking(False)
    return made
def is_over(one):
    try:
        return not one.recv(4_096)
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
def all_over(callers):
    until_s = time.monotonic() + 15
    while not all(map(is_over, callers)):
        assert time.monotonic() < until_s, "some are not hung up on"
left = {call(): hello + noise for _ in range(calls)}
until_s = time.monotonic() + 1
while time.monotonic() < until_s and left:
    for one, rest in list(left.items()):
        try:
            left[one] = rest[one.send(rest):]
        except BlockingIOError:
            pass
        except ConnectionError:
            left[one] = b""
print("shouted", flush=True)
sys.stdin.readline()
all_over([*left, *(call() for _ in range(calls))])
"""


@contextmanager
def shouting(endpoint: str, *, longest: int) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Have strangers shout at a socket of this process for a second.

    Args:
        endpoint: `tcp://host:port`.
        longest: a message that the socket takes, bytes.

    Yields:
        Their process, whose end `communicate` awaits: it calls again as often, and ends with 0
        when it has been hung up on each time; and by how many bytes ours has grown meanwhile.
    """
    here = psutil.Process()
    start, grown = here.memory_info().rss, 0
    settings = [endpoint.removeprefix("tcp://"), str(longest), str(CALLS)]
    with subprocess.Popen(  # noqa: S603 our own program
        [sys.executable, "-c", SHOUTING, *settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as strangers:
        try:
            assert strangers.stdout is not None
            while not select.select([strangers.stdout], (), (), 0.001)[0]:
                grown = max(grown, here.memory_info().rss - start)
            assert strangers.stdout.readline() == b"shouted\n"
            yield strangers, grown
        finally:
            strangers.kill()
