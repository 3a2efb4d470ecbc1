"""Waiting: ended by what arrives, by other threads, or by time; never too late."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator

import pytest

from slackwater.actors.wire.channel import ChannelPoller
from slackwater.actors.wire.waiting import Waker, wait
from tests.actors.wire.links import Link, is_lost, message, receive, until

LONG_S = 60.0  # a test that really waits for so long fails by its bound below


@pytest.fixture
def waker() -> Iterator[Waker]:
    made = Waker()
    yield made
    made.close()


def seconds_waited(*, timeout_s: float, waker: Waker | None = None) -> float:
    start_s = time.monotonic()
    wait([], timeout_s, waker=waker)
    return time.monotonic() - start_s


def test_another_thread_ends_a_wait(waker: Waker) -> None:
    thread = threading.Thread(target=waker.wake)
    thread.start()
    assert seconds_waited(timeout_s=LONG_S, waker=waker) < LONG_S / 2
    thread.join()
    assert not waker.is_ready


def test_a_wake_between_two_waits_ends_the_next_one(waker: Waker) -> None:
    for _ in range(3):
        waker.wake()
    assert seconds_waited(timeout_s=LONG_S, waker=waker) < LONG_S / 2
    assert seconds_waited(timeout_s=0.01, waker=waker) >= 0.01  # three wakes are one


def test_a_wait_lasts_for_its_time_and_not_for_whole_milliseconds(waker: Waker) -> None:
    shortest_s = min(seconds_waited(timeout_s=0.000_2, waker=waker) for _ in range(200))
    assert 0.000_2 <= shortest_s < 0.001


def test_a_deadline_that_has_passed_is_no_wait(waker: Waker) -> None:
    assert seconds_waited(timeout_s=-5.0, waker=waker) < 1.0
    assert seconds_waited(timeout_s=-5.0) < 1.0


def test_a_wait_for_ever_can_be_ended(waker: Waker) -> None:
    waker.wake()
    wait([], float("inf"), waker=waker)


def test_no_wake_of_many_threads_is_lost(waker: Waker) -> None:
    turns, threads = 2_000, 2
    wakes_done = [0] * threads

    def wake_often(who: int) -> None:
        for turn in range(turns):
            wakes_done[who] = turn + 1
            waker.wake()

    running = [threading.Thread(target=wake_often, args=(who,)) for who in range(threads)]
    for thread in running:
        thread.start()
    while sum(wakes_done) < turns * threads:
        assert seconds_waited(timeout_s=LONG_S, waker=waker) < LONG_S / 2
    for thread in running:
        thread.join()


def test_waking_what_is_closed_goes_nowhere() -> None:
    closed = Waker()
    closed.close()
    closed.close()
    closed.wake()
    closed.clear()


def test_a_descriptor_beyond_select_can_be_waited_for() -> None:
    class HighWaker(Waker):
        def fileno(self) -> int:
            return high_fd

    waker = HighWaker()
    high_fd = fcntl.fcntl(Waker.fileno(waker), fcntl.F_DUPFD, 1_100)
    try:
        assert seconds_waited(timeout_s=0.005, waker=waker) >= 0.004
        threading.Thread(target=waker.wake).start()
        assert seconds_waited(timeout_s=LONG_S, waker=waker) < LONG_S / 2
    finally:
        os.close(high_fd)
        waker.close()


def test_a_message_that_a_send_took_note_of_ends_a_wait(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    sender.send(message(0), 0)
    receive(receiver, 1)
    until(lambda: sender.poll() == [] and sender.is_connected, [sender])
    poller = ChannelPoller({"out": sender})
    granted = 0
    for turn in range(300):  # most sends look for what has come, and silence the descriptor
        receiver.grant(1)
        sender.send(message(turn), 0)
        start_s = time.monotonic()
        while granted <= turn:
            poller.wait(LONG_S)
            assert time.monotonic() - start_s < LONG_S / 2
            granted += sum(sum(sender.poll()) for _ in poller.ready())
        receiver.receive(0)


def test_a_message_that_a_look_at_the_peer_took_note_of_ends_a_wait(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    poller = ChannelPoller({"in": receiver})
    sender.send(message(0), 0)
    receive(receiver, 1)
    for turn in range(300):
        sender.send(message(turn), 0)
        start_s, got = time.monotonic(), 0
        while not got:
            assert not is_lost(receiver)
            poller.wait(LONG_S)
            assert time.monotonic() - start_s < LONG_S / 2
            assert not is_lost(receiver)
            got = sum(len(receiver.receive(0)) for _ in poller.ready())


def test_what_is_not_read_to_its_end_is_ready_again(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    poller = ChannelPoller({"in": receiver})
    for number in range(20):
        sender.send(message(number), 0)
    got = 0
    start_s = time.monotonic()
    while got < 20:
        poller.wait(LONG_S)
        assert time.monotonic() - start_s < LONG_S / 2
        got += sum(len(receiver.receive(0, max_messages=1)) for _ in poller.ready())


def test_a_channel_that_never_rests_does_not_hide_another(link: Link) -> None:
    busy, calm = link.receiver(), link.receiver()
    to_busy, to_calm = link.sender(busy), link.sender(calm)
    poller = ChannelPoller({"busy": busy, "calm": calm})
    for first, second in ((to_busy, busy), (to_calm, calm)):
        first.send(message(0), 0)
        receive(second, 1)
    for number in range(200):
        to_busy.send(message(number), 0)
    wait([busy], LONG_S)
    assert busy.receive(0, max_messages=1)
    to_calm.send(message(1), 0)
    wait([calm], LONG_S)  # else a busy machine may take longer than 150 looks to bring it
    looks = 0
    while not calm.messages > 1:
        to_busy.send(message(looks), 0)
        poller.wait(LONG_S)
        for name in poller.ready():
            (busy if name == "busy" else calm).receive(0, max_messages=1)
        looks += 1
    assert looks < 150  # and not all 200, which lie there before it
