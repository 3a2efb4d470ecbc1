"""Time server and client over a loopback; peers lie, replay, cut short and stay silent."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slackwater.ingest.timesync.client import TimeSync
from slackwater.ingest.timesync.key import new_key, read_key
from slackwater.ingest.timesync.server import TimeServer
from slackwater.ingest.timesync.wire import DATAGRAM_BYTES, Answer, answer, question, read_answer
from slackwater.runtime.errors import IngestError, SettingError

HERE = "127.0.0.1"
MS, SECOND, HOUR = 10**6, 10**9, 3_600 * 10**9
SHIFTS = [sign * size for size in (0, MS, 10 * MS, 60 * SECOND, HOUR) for sign in (1, -1)]
SHORT_S = 0.02
NONCE = bytes(range(16))


@pytest.fixture
def key(tmp_path: Path) -> str:
    new_key(str(tmp_path / "key"))
    return str(tmp_path / "key")


@pytest.fixture
def other_key(tmp_path: Path) -> str:
    new_key(str(tmp_path / "other"))
    return str(tmp_path / "other")


class Peer:
    """A server that answers as it is told: {number of the question, its bytes: datagrams}."""

    def __init__(self, answers: Callable[[int, bytes], list[bytes]]) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((HERE, 0))
        self.endpoint = f"{HERE}:{self._socket.getsockname()[1]}"
        self._answers = answers
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        number = 0
        while True:
            asked = self._socket.recvfrom(2_000)
            datagram, asker = asked
            if datagram == b"end":
                return
            for one in self._answers(number, datagram):
                self._socket.sendto(one, asker)
            number += 1

    def close(self) -> None:
        self._socket.sendto(b"end", self._socket.getsockname())
        self._thread.join()
        self._socket.close()


@pytest.fixture
def peer(key: str) -> Iterator[Callable[..., TimeSync]]:
    """Make a client of a peer that answers so."""
    opened: list[Peer | TimeSync] = []

    def made(answers: Callable[[int, bytes], list[bytes]], **settings: Any) -> TimeSync:
        opened.append(Peer(answers))
        sync = TimeSync(opened[-1].endpoint, key, **settings)  # type: ignore[union-attr]
        opened.append(sync)
        return sync

    yield made
    for one in opened:
        one.close()


def nonce_of(datagram: bytes) -> bytes:
    return datagram[8:24]


def honest(key: str, datagram: bytes, *, ahead_ns: int = 0, held_ns: int = 0) -> bytes:
    now_ns = time.time_ns() + ahead_ns
    return answer(read_key(key), Answer(nonce_of(datagram), now_ns, now_ns + held_ns))


@pytest.mark.parametrize("shift_ns", SHIFTS)
def test_a_shifted_clock_is_put_right_within_the_bound(key: str, shift_ns: int) -> None:
    def shifted_ns() -> int:
        return time.time_ns() + shift_ns

    with TimeServer(key) as server:
        sync = TimeSync(server.endpoint, key, wall_ns=shifted_ns)
        assert sync.ask() == 10
        now = sync.now()
        assert abs(now.offset_ns + shift_ns) <= now.bound_ns
        assert sync.round_trip_ns // 2 <= now.bound_ns
        sync.close()
    assert (server.answered, server.refused) == (10, {})


def test_an_answer_is_as_long_as_its_question(key: str) -> None:
    sealed = read_key(key)
    asked, told = question(sealed, NONCE), answer(sealed, Answer(NONCE, 1, 2))
    assert len(asked) == len(told) == DATAGRAM_BYTES
    assert read_answer(sealed, told) == Answer(NONCE, 1, 2)


def test_the_server_answers_nobody_without_the_key_and_counts_them(
    key: str, other_key: str
) -> None:
    sealed, other = read_key(key), read_key(other_key)
    asked = question(sealed, NONCE)
    strange = [
        b"",
        b"?",
        asked[:-1],  # cut short
        asked + b"\0",
        asked * 500,  # far longer than it reads
        bytes(DATAGRAM_BYTES),
        question(other, NONCE),
        bytes([asked[0] ^ 1]) + asked[1:],
        asked[:-1] + bytes([asked[-1] ^ 1]),
        answer(sealed, Answer(NONCE, 1, 2)),  # a word of its own, sent back to it
        sealed.seal(asked[:24] + b"\1" * 16),  # a question that says more than it asks
    ]
    with TimeServer(key) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(10)
        host, _, port = server.endpoint.rpartition(":")
        for one in strange:
            asker.sendto(one, (host, int(port)))
        asker.sendto(asked, (host, int(port)))
        told = read_answer(sealed, asker.recv(2_000))  # the first that comes, and the only one
        assert isinstance(told, Answer)
        assert told.nonce == NONCE
    assert (server.answered, server.refused) == (1, {"malformed": 7, "wrong_key": 4})


def test_a_client_with_another_key_hears_nothing_and_says_what_to_look_at(
    key: str, other_key: str
) -> None:
    with TimeServer(key) as server:
        sync = TimeSync(server.endpoint, other_key, exchanges=2, answer_s=SHORT_S)
        with pytest.raises(IngestError, match=r"answer 2 questions within 0\.02 s each: no"):
            sync.ask()
        sync.close()
        assert server.refused == {"wrong_key": 2}


def test_a_server_that_is_not_there_is_said_so(key: str) -> None:
    with TimeServer(key) as server:
        gone = server.endpoint
    sync = TimeSync(gone, key)
    with pytest.raises(IngestError, match=f"time server {gone} does not answer .* same key"):
        sync.ask()
    with pytest.raises(IngestError, match=r"not asked yet; call ask\(\) first"):
        sync.now()
    sync.close()


def test_answers_of_others_and_answers_cut_short_do_not_count(
    key: str, other_key: str, peer: Callable[..., TimeSync]
) -> None:
    def answers(number: int, asked: bytes) -> list[bytes]:
        right = honest(key, asked)
        wrong = honest(other_key, asked, ahead_ns=HOUR)
        return [
            wrong,
            right[:-1],
            right + b"\0",
            right[:20] + bytes([right[20] ^ 1]) + right[21:],
            right,
        ]

    sync = peer(answers, exchanges=3)
    assert sync.ask() == 3
    assert sync.refused == {"wrong_key": 6, "malformed": 6}
    assert abs(sync.now().offset_ns) <= sync.now().bound_ns


def test_an_answer_to_an_earlier_question_does_not_count(
    key: str, peer: Callable[..., TimeSync]
) -> None:
    earlier: list[bytes] = []

    def answers(number: int, asked: bytes) -> list[bytes]:
        replayed, told = list(earlier), honest(key, asked)
        earlier[:] = [told]
        return [*replayed, told]

    sync = peer(answers, exchanges=4)
    assert sync.ask() == 4
    assert sync.refused == {"other_question": 3}


def test_an_answer_that_comes_too_late_does_not_count(
    key: str, peer: Callable[..., TimeSync]
) -> None:
    late: list[bytes] = []

    def answers(number: int, asked: bytes) -> list[bytes]:
        """Answer the first when the second is asked, which is when its time is over."""
        if number == 0:
            late.append(honest(key, asked, ahead_ns=HOUR))
            return []
        return [*late, honest(key, asked)]

    sync = peer(answers, exchanges=2, answer_s=0.2)
    assert sync.ask() == 1
    assert (sync.unanswered, sync.refused) == (1, {"other_question": 1})
    assert abs(sync.now().offset_ns) <= sync.now().bound_ns


@pytest.mark.parametrize(
    ("got_ns", "left_ns"),
    [
        (SECOND, SECOND - 1),  # left before it came
        (SECOND, SECOND + HOUR),  # took longer than the client waited: a negative delay
        (2**63 - 2, 2**63 - 1),  # the year 2262
        (-(2**63), -(2**63)),
    ],
)
def test_times_that_cannot_be_do_not_count(
    key: str, peer: Callable[..., TimeSync], got_ns: int, left_ns: int
) -> None:
    def answers(number: int, asked: bytes) -> list[bytes]:
        return [answer(read_key(key), Answer(nonce_of(asked), got_ns, left_ns))]

    sync = peer(answers, exchanges=1, answer_s=SHORT_S)
    with pytest.raises(IngestError, match=r"no answer counted \(1 impossible\)"):
        sync.ask()


def test_a_server_whose_clock_is_set_contradicts_itself_and_the_estimate_begins_anew(
    key: str, peer: Callable[..., TimeSync]
) -> None:
    def answers(number: int, asked: bytes) -> list[bytes]:
        return [honest(key, asked, ahead_ns=HOUR if number < 5 else 0)]

    sync = peer(answers)
    assert sync.ask() == 10
    assert sync.contradictions == 1
    assert abs(sync.now().offset_ns) <= sync.now().bound_ns


def test_a_jump_of_our_own_clock_shows_in_the_next_offset_without_an_exchange(key: str) -> None:
    ahead_ns = [0]
    with TimeServer(key) as server:
        sync = TimeSync(server.endpoint, key, wall_ns=lambda: time.time_ns() + ahead_ns[0])
        sync.ask()
        before = sync.now()
        ahead_ns[0] = HOUR
        after = sync.now()
        sync.close()
    assert abs(after.offset_ns - before.offset_ns + HOUR) <= after.bound_ns + before.bound_ns
    assert sync.contradictions == 0


def test_a_stall_between_the_two_clocks_that_are_read_is_in_the_bound(key: str) -> None:
    later_ns = [0]

    def wall_ns() -> int:
        now_ns = time.time_ns() + later_ns[0]
        later_ns[0] += SECOND  # the process sleeps, behind the reading of this one
        return now_ns

    with TimeServer(key) as server:
        sync = TimeSync(
            server.endpoint,
            key,
            wall_ns=wall_ns,
            steady_ns=lambda: time.monotonic_ns() + later_ns[0],
        )
        sync.ask()
        now = sync.now()
        sync.close()
    assert SECOND // 4 < abs(now.offset_ns) <= now.bound_ns


def test_a_server_that_falls_silent_leaves_what_is_known_and_its_bound_grows(key: str) -> None:
    later_ns = [0]
    with TimeServer(key) as server:
        sync = TimeSync(
            server.endpoint,
            key,
            wall_ns=lambda: time.time_ns() + later_ns[0],
            steady_ns=lambda: time.monotonic_ns() + later_ns[0],
            answer_s=SHORT_S,
        )
        sync.ask()
    fresh = sync.now()
    later_ns[0] = 100 * SECOND
    assert sync.ask() == 0
    aged = sync.now()
    sync.close()
    assert sync.unanswered == 1  # the first without an answer ends the round
    assert aged.bound_ns - fresh.bound_ns >= 9 * MS  # 100 ppm of 100 s, less what reading may take
    assert aged.offset_ns == pytest.approx(fresh.offset_ns, abs=aged.bound_ns)


def test_a_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "key"
    new_key(str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    secret = path.read_text().strip()
    assert secret not in repr(read_key(str(path)))
    with pytest.raises(SettingError, match="exists already"):
        new_key(str(path))
    path.chmod(0o640)
    with pytest.raises(SettingError, match=r"has mode 0640: .* chmod 600") as refused:
        read_key(str(path))
    assert secret not in str(refused.value)


@pytest.mark.parametrize("text", ["", "secret", "00" * 31, "0" * 5_000, "é" * 64])
def test_a_file_that_holds_no_key_is_refused_without_telling_what_it_holds(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "key"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(SettingError, match="holds no key of 64 hexadecimal digits") as refused:
        read_key(str(path))
    assert not text or text not in str(refused.value)


def test_a_pipe_and_a_folder_are_no_key_and_nobody_waits_for_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", mode=0o600)
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(SettingError, match="is not a regular file"):
            read_key(str(path))


def test_a_key_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be read: No such file"):
        read_key(str(tmp_path / "none"))


@pytest.mark.parametrize("server", ["", "host", "host:", ":80", "host:0", "host:65536", "::1:80"])
def test_an_address_without_host_and_port_is_refused(server: str, key: str) -> None:
    with pytest.raises(SettingError, match="is not an address; write host:port"):
        TimeSync(server, key)
