"""Slots of shifted clocks and their reference, over real sockets."""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zmq

from slackwater.actors.slot import clock_sync
from slackwater.actors.slot.clock_sync import ClockServer, ClockSync, SlotClock
from slackwater.actors.wire.keys import ChannelKeys
from slackwater.runtime.errors import ClusterError
from slackwater.runtime.measure.clock import ReferenceClock
from tests.support.waiting import until

HERE = "127.0.0.1"
KEYS = ChannelKeys.generate()
MS, MINUTE, HOUR = 10**6, 60 * 10**9, 3_600 * 10**9
SHIFTS = [sign * size for size in (MS, 5 * MS, 10 * MS, MINUTE, HOUR) for sign in (1, -1)]
SOON_S = 20.0
PEERS: list[zmq.Socket[bytes]] = []  # to be closed before their context
QUESTION, ANSWER = struct.Struct("<4sBBHQ"), struct.Struct("<4sBBHQqq")


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    """As a slot's process has one; its end ends all threads."""
    made: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield made
    while PEERS:
        PEERS.pop().close(linger=0)
    made.term()


def slot_clock(context: zmq.Context[Any], shift_ns: int) -> SlotClock:
    return SlotClock(keys=KEYS, context=context, host=HERE, shift=shift_ns)


def sync(
    context: zmq.Context[Any],
    endpoint: str,
    *,
    keys: ChannelKeys = KEYS,
    clock: ReferenceClock | None = None,
) -> ClockSync:
    clock = clock or ReferenceClock(time.time_ns)
    return ClockSync(clock, time.time_ns, endpoint, keys=keys, context=context)


def raw(
    context: zmq.Context[Any], endpoint: str, keys: ChannelKeys | None = KEYS
) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
    """A peer that may say anything, and what tells of its disconnections."""
    socket: zmq.Socket[bytes] = context.socket(zmq.DEALER)
    socket.linger = 0
    if keys is not None:
        keys.guard_sender(socket)
    gone = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    PEERS.extend([socket, gone])
    socket.connect(endpoint)
    return socket, gone


def is_true(clock: ReferenceClock) -> bool:
    """Whether it tells this machine's time within its error, however long reading it takes."""
    before_ns, now_ns, after_ns = time.time_ns(), clock.now_ns(), time.time_ns()
    return before_ns - clock.largest_error_ns <= now_ns <= after_ns + clock.largest_error_ns


def question(number: int) -> bytes:
    return QUESTION.pack(b"SLKC", 1, 1, 0, number)


def answer(number: int, got_ns: int = 0, left_ns: int = 0) -> bytes:
    return ANSWER.pack(b"SLKC", 1, 2, 0, number, got_ns, left_ns)


class Reference:
    """A reference that answers as it is told: {question's number: parts of each answer}."""

    def __init__(
        self, context: zmq.Context[Any], answers: Callable[[int], list[list[bytes]]]
    ) -> None:
        self._socket = context.socket(zmq.ROUTER)
        self._socket.linger = 0
        KEYS.guard_reference(self._socket)
        self._socket.bind(f"tcp://{HERE}:*")
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._answers = answers
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        try:
            while True:
                peer, asked = self._socket.recv_multipart()
                for parts in self._answers(QUESTION.unpack(asked)[-1]):
                    self._socket.send_multipart([peer, *parts])
        except zmq.ContextTerminated:
            self._socket.close()


def test_a_shifted_clock_tells_the_references_time_within_its_error(
    context: zmq.Context[Any],
) -> None:
    endpoint = slot_clock(context, 0).serve()
    for shift_ns in SHIFTS:
        clock = slot_clock(context, shift_ns)
        clock.follow(endpoint)
        before_ns, now_ns, after_ns = time.time_ns(), clock.now_ns(), time.time_ns()
        told = clock.report("node-2")
        error_ns = told.largest_error_ns
        assert before_ns - error_ns <= now_ns <= after_ns + error_ns
        assert abs(told.offset_ns + shift_ns) <= error_ns + MS  # two clocks are read for it
        assert error_ns < 500 * MS
        assert (told.exchanges, told.refused, told.is_reference) == (8, 0, False)


def test_setting_the_time_of_a_host_moves_nothing_in_its_slots(
    context: zmq.Context[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    true_ns, set_by_ns = time.time_ns, [0]
    endpoint = slot_clock(context, 0).serve()
    monkeypatch.setattr(clock_sync.time, "time_ns", lambda: true_ns() + set_by_ns[-1])
    clock = slot_clock(context, MS)
    clock.follow(endpoint)
    for by_ns in (HOUR, -HOUR):
        set_by_ns.append(by_ns)
        before_ns, now_ns, after_ns = true_ns(), clock.now_ns(), true_ns()
        error_ns = clock.report("node-2").largest_error_ns
        assert before_ns - error_ns <= now_ns <= after_ns + error_ns


def test_the_reference_may_be_shifted_itself(context: zmq.Context[Any]) -> None:
    reference, other = slot_clock(context, HOUR), slot_clock(context, -MINUTE)
    other.follow(reference.serve())
    before_ns, now_ns, after_ns = reference.now_ns(), other.now_ns(), reference.now_ns()
    error_ns = other.report("node-2").largest_error_ns
    assert before_ns - error_ns <= now_ns <= after_ns + error_ns


def test_clocks_are_compared_for_ever(
    context: zmq.Context[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_sync, "EVERY_S", 0.01)
    clock = slot_clock(context, HOUR)
    clock.follow(slot_clock(context, 0).serve())
    until(lambda: clock.report("x").exchanges >= 20, within_s=SOON_S, what="20 exchanges")
    assert clock.report("x").refused == 0


def test_slots_share_a_clock_if_boot_and_shift_are_the_same(
    context: zmq.Context[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    same, again, other = (slot_clock(context, shift_ns) for shift_ns in (0, 0, MS))
    assert same.identity == again.identity is not None
    assert same.identity != other.identity
    monkeypatch.setattr(clock_sync, "boot_id", lambda: None)
    assert same.identity is None


HOSTILE: list[list[bytes]] = [
    [b""],
    [b"x"],
    [question(1)[:-1]],
    [question(1) + b"\0"],
    [question(1), question(2)],
    [b"", question(1)],
    [b"SLKD" + question(1)[4:]],
    [QUESTION.pack(b"SLKC", 2, 1, 0, 1)],
    [QUESTION.pack(b"SLKC", 1, 2, 0, 1)],
    [QUESTION.pack(b"SLKC", 1, 1, 1, 1)],
    [answer(1)],
]


def test_what_is_no_question_is_refused_counted_and_not_answered(
    context: zmq.Context[Any],
) -> None:
    server = ClockServer(time.time_ns, keys=KEYS, context=context, bind_host=HERE)
    rng = random.Random(7)  # noqa: S311 a seed, not a secret
    noise = [[rng.randbytes(rng.randrange(100))] for _ in range(500)]
    peer, _ = raw(context, server.endpoint)
    for parts in HOSTILE + noise:
        peer.send_multipart(parts)
    peer.send(question(99))
    peer.rcvtimeo = round(SOON_S * 1_000)
    assert ANSWER.unpack(peer.recv())[4] == 99
    assert server.refused == len(HOSTILE) + len(noise)


def test_a_question_that_is_too_long_ends_that_connection_only(context: zmq.Context[Any]) -> None:
    server = ClockServer(time.time_ns, keys=KEYS, context=context, bind_host=HERE)
    peer, gone = raw(context, server.endpoint)
    peer.send(b"x" * 1_000_000)
    assert gone.poll(round(SOON_S * 1_000))
    sync(context, server.endpoint).start()


STRANGERS = {
    "no keys": None,
    "keys of another job": ChannelKeys.generate(),
    "a sender's key of another job": ChannelKeys(
        KEYS.receiver_public, KEYS.receiver_secret, *zmq.curve_keypair()
    ),
}


@pytest.mark.parametrize("keys", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_is_told_nothing(context: zmq.Context[Any], keys: ChannelKeys | None) -> None:
    server = ClockServer(time.time_ns, keys=KEYS, context=context, bind_host=HERE)
    stranger, refused = raw(context, server.endpoint, keys)
    stranger.send(question(1))
    assert refused.poll(round(SOON_S * 1_000))
    assert not stranger.poll(0)
    assert server.refused == 0


def test_a_reference_that_never_answers_is_named(context: zmq.Context[Any]) -> None:
    silent = Reference(context, lambda _: [])
    with pytest.raises(ClusterError, match=r"cannot compare its clock.*no answer within 0.2 s"):
        sync(context, silent.endpoint).start(within_s=0.2)
    with pytest.raises(ClusterError, match="cannot compare its clock"):
        sync(context, silent.endpoint, keys=ChannelKeys.generate()).start(within_s=0.2)


def test_addresses_that_cannot_be_are_named(context: zmq.Context[Any]) -> None:
    with pytest.raises(ClusterError, match="clock cannot be compared with 'nowhere'"):
        sync(context, "nowhere")
    with pytest.raises(ClusterError, match=r"cannot answer for the clock on '192\.0\.2\.1'"):
        ClockServer(time.time_ns, keys=KEYS, context=context, bind_host="192.0.2.1")
    with pytest.raises(ClusterError, match="every network of this node"):
        ClockServer(time.time_ns, keys=KEYS, context=context, bind_host="0.0.0.0")  # noqa: S104


def test_what_is_no_answer_is_refused_counted_and_passed_over(context: zmq.Context[Any]) -> None:
    wrong = [*HOSTILE[:-1], [question(1)], [answer(0)], [answer(2**63)], [answer(1), b""]]

    def answers(number: int) -> list[list[bytes]]:
        now_ns = time.time_ns()
        return [*wrong, [answer(number, now_ns, now_ns)]]

    clock = ReferenceClock(time.time_ns)
    asking = sync(context, Reference(context, answers).endpoint, clock=clock)
    asking.start()
    assert asking.refused == 8 * len(wrong)
    assert clock.report("x").exchanges == 8
    assert is_true(clock)


def test_late_answers_are_nobodys_fault(context: zmq.Context[Any]) -> None:
    def answers(number: int) -> list[list[bytes]]:
        now_ns = time.time_ns()
        return [[answer(n, 0, 0)] for n in range(1, number)] + [[answer(number, now_ns, now_ns)]]

    clock = ReferenceClock(time.time_ns)
    asking = sync(context, Reference(context, answers).endpoint, clock=clock)
    asking.start()
    assert asking.refused == 0
    assert clock.report("x").exchanges == 8


def test_an_answer_that_cannot_be_true_is_refused(context: zmq.Context[Any]) -> None:
    def answers(number: int) -> list[list[bytes]]:
        now_ns = time.time_ns()
        held_ns = HOUR if number % 2 else 0  # longer than the whole exchange took
        return [[answer(number, now_ns, now_ns + held_ns)]]

    clock = ReferenceClock(time.time_ns)
    asking = sync(context, Reference(context, answers).endpoint, clock=clock)
    asking.start()
    assert asking.refused == 4
    assert clock.report("x").exchanges == 4


def test_a_reference_that_falls_silent_fails_nothing_but_the_error_grows(
    context: zmq.Context[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_sync, "EVERY_S", 0.01)
    asked: list[int] = []

    def answers(number: int) -> list[list[bytes]]:
        asked.append(number)
        now_ns = time.time_ns()
        return [[answer(number, now_ns, now_ns)]] if number <= 8 else []

    clock = ReferenceClock(time.time_ns)
    asking = sync(context, Reference(context, answers).endpoint, clock=clock)
    asking.start()
    monkeypatch.setattr(clock_sync, "ANSWER_S", 0.02)
    first_ns = clock.error_ns()
    until(lambda: len(asked) >= 9, within_s=SOON_S, what="a question that is not answered")
    until(lambda: clock.error_ns() > first_ns, within_s=SOON_S, what="the error to grow")
    assert clock.report("x").exchanges == 8
    assert is_true(clock)


def test_a_wall_clock_that_is_set_is_told_and_moves_no_time(context: zmq.Context[Any]) -> None:
    off = [0]
    first, second = (
        SlotClock(keys=KEYS, context=context, host=HERE, shift=lambda: off[0]) for _ in range(2)
    )
    assert first.identity == second.identity
    second.keep(first.ahead_ns)
    before_ns = first.now_ns()
    off[0] = -HOUR
    between_ns = second.now_ns()
    assert before_ns <= between_ns <= first.now_ns() < before_ns + MINUTE
    for clock in (first, second):
        told = clock.report("node-1")
        assert told.steps == 1
        assert abs(told.stepped_ns + HOUR) < 100 * MS
        assert told.is_reference
