"""Calls with a time limit: what they return and raise, and what becomes of one that hangs."""

from __future__ import annotations

import socket
import threading

import pytest

from slackwater.actors.nodes import time_limits
from slackwater.actors.nodes.time_limits import attempt, within
from slackwater.runtime.errors import ClusterError


def test_a_call_in_time_returns_and_raises_as_it_is() -> None:
    assert within(5, divmod, 7, 2, what="a sum") == (3, 1)
    with pytest.raises(ZeroDivisionError):
        within(5, divmod, 7, 0, what="a sum")


def test_a_head_that_refuses_connections_ends_a_wait_before_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"  # bound, and nothing listens
        monkeypatch.setattr(time_limits, "LOOK_S", 0.01)
        monkeypatch.setattr(time_limits, "_head_address", lambda: address)
        over = threading.Event()
        try:
            with pytest.raises(ClusterError, match=f"is gone: nothing listens at {address}"):
                within(600, over.wait, what="which nodes there are")
            closed.listen()
            assert time_limits.refusing_head() is None
        finally:
            over.set()


def test_a_call_that_hangs_is_left_behind_and_one_whose_connection_broke_is_said() -> None:
    over = threading.Event()
    try:
        with pytest.raises(ClusterError, match=r"did not say which nodes there are within 0\.01 s"):
            within(0.01, over.wait, what="which nodes there are")
        assert not attempt(0.01, over.wait)
    finally:
        over.set()

    def broken() -> None:
        raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(ClusterError, match=r"the connection to Ray broke \(.*Broken pipe\)"):
        within(5, broken, what="anything")
    assert not attempt(5, broken)
    assert attempt(5, over.wait)
