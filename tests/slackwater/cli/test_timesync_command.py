"""`slackwater timesync`: a key is made, a server answers until Ctrl-C, a client is told."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from slackwater.ingest.timesync.client import TimeSync
from slackwater.ingest.timesync.server import TimeServer
from slackwater.runtime.errors import IngestError
from tests.support.typed import said

HOUR = 3_600 * 10**9
MOST_TRIES = 10_000


@pytest.fixture
def key(tmp_path: Path) -> str:
    path = str(tmp_path / "key")
    assert "a new key is in" in said("timesync", "key", path)
    return path


def test_a_client_says_how_far_its_clock_is_off(key: str) -> None:
    with TimeServer(key, clock_ns=lambda: time.time_ns() + HOUR) as server:
        text = said("timesync", "ask", server.endpoint, "--key", key)
        told = json.loads(said("timesync", "ask", server.endpoint, "--key", key, "--json"))
    assert "this clock is 60.0 min behind the server's, ±" in text
    assert "10 exchanges" in text
    assert abs(told["offset_ns"] - HOUR) <= told["bound_ns"]
    assert (told["exchanges"], told["unanswered"], told["refused"]) == (10, 0, {})


def test_a_server_answers_until_ctrl_c_and_says_how_often(key: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def ask_and_end() -> None:
        for _ in range(MOST_TRIES):  # it takes a moment until it listens
            sync = TimeSync(f"127.0.0.1:{port}", key, exchanges=1)
            try:
                sync.ask()
                break
            except IngestError:
                continue
            finally:
                sync.close()
        os.kill(os.getpid(), signal.SIGINT)

    asker = threading.Thread(target=ask_and_end)
    handler = signal.getsignal(signal.SIGINT)
    asker.start()
    text = said("timesync", "serve", "--key", key, "--port", str(port))
    asker.join()
    assert f"the time is told at 127.0.0.1:{port} (UDP)" in text
    assert "1 questions answered; nothing refused" in text
    assert signal.getsignal(signal.SIGINT) == handler


def test_a_key_that_others_can_read_is_refused(key: str) -> None:
    Path(key).chmod(0o644)
    assert "chmod 600" in said("timesync", "ask", "127.0.0.1:9", "--key", key, code=1)
    assert "chmod 600" in said("timesync", "serve", "--key", key, code=1)
