"""Connections to the push wire that show no key: as many as may wait, and no more."""

from __future__ import annotations

import contextlib
import socket
import time

from slackwater.actors.connections.pending import MOST_BYTES
from slackwater.ingest.push import wire
from slackwater.ingest.push.wire import PIECE_BYTES
from tests.ingest.push_driver import Driver, opened, poll_until, rows


def test_strangers_who_say_nothing_are_few_and_do_not_keep_the_senders_out() -> None:
    """On Linux; elsewhere the kernel does not say who has shown the key."""
    driver = Driver()
    reader = opened(driver)
    most = MOST_BYTES // (PIECE_BYTES + 64)  # what encryption adds
    host, _, port = driver.source_at.removeprefix("tcp://").rpartition(":")
    with contextlib.ExitStack() as closing:
        callers = [
            closing.enter_context(socket.create_connection((host, int(port)), 5, ("127.0.0.2", 0)))
            for _ in range(most + 40)
        ]
        until_s = time.monotonic() + wire.HANDSHAKE_MS / 2e3  # they would be hung up on then
        while len(waiting := [one for one in callers if not is_over(one)]) > most:
            assert time.monotonic() < until_s, f"{len(waiting)} strangers wait"
        driver.push(0, 0, rows(1))
        poll_until(reader, lambda: len(driver.done) == 1)
    reader.close()
    driver.leave()


def is_over(caller: socket.socket) -> bool:
    """Return whether the other end has hung up."""
    caller.setblocking(False)
    try:
        while caller.recv(4_096):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True
