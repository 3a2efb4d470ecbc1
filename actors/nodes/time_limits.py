"""Limit the time of Ray calls that have no limit.

Ray asks its head (gcs_server) for nodes, names and keys, and waits for the answer: for ever, if the
head is gone. So such a call runs in a thread that may be abandoned.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import ray
import ray._private.worker

from slackwater.runtime.errors import ClusterError

__all__ = ["ASK_S", "attempt", "within"]

_T = TypeVar("_T")
LOOK_S = 0.5
REFUSALS = 4
"""Refused connections in a row after which the head is gone; one that is restarted may refuse."""
ASK_S = 10.0
"""Limit of a question to the cluster's head; takes a millisecond, more on a busy machine."""


def within(limit_s: float, ask: Callable[..., _T], *args: Any, what: str, **named: Any) -> _T:
    """Return `ask(*args, **named)`, or raise its exception.

    Args:
        limit_s: how long to wait for `ask`.
        ask: runs in a separate thread, which is abandoned if it does not return.
        args: positional arguments of `ask`.
        what: subject of the question, for the error: "which nodes there are".
        named: keyword arguments of `ask`.

    Raises:
        ClusterError: `ask` did not return in time, or its connection to Ray broke.
    """
    returned: list[_T] = []
    raised: list[BaseException] = []

    def call() -> None:
        try:
            returned.append(ask(*args, **named))
        except BaseException as problem:  # the caller's to handle
            raised.append(problem)

    thread = threading.Thread(target=call, name=f"ask {what}", daemon=True)
    thread.start()
    refused = _joined(thread, limit_s)
    if returned:
        return returned[0]
    if refused is not None:
        raise ClusterError(
            f"the head of the Ray cluster is gone: nothing listens at {refused}, as it was asked "
            f"{what}; see with `ray status` whether it is up, then connect again"
        )
    if not raised:
        raise ClusterError(
            f"the head of the Ray cluster did not say {what} within {limit_s:g} s; its gcs_server "
            "may be gone or hang: see with `ray status` whether it is up, then connect again"
        )
    if isinstance(raised[0], OSError):
        raise ClusterError(
            f"the connection to Ray broke ({raised[0]}) as it was asked {what}; see with "
            "`ray status` whether the cluster is up, then connect again"
        ) from raised[0]
    raise raised[0]


def _joined(thread: threading.Thread, limit_s: float) -> str | None:
    """Wait for a thread; return the head's address once it refuses connections."""
    until_s, refusals = time.monotonic() + limit_s, 0
    while thread.is_alive() and (left_s := until_s - time.monotonic()) > 0:
        thread.join(min(left_s, LOOK_S))
        if thread.is_alive() and (refused := refusing_head()) is not None:
            refusals += 1
            if refusals == REFUSALS:
                return refused
        else:
            refusals = 0
    return None


def refusing_head() -> str | None:
    """Return the address of this driver's head if its host refuses connections there.

    None also where the address is not known (a client's proxy), or nothing is known of the host.
    """
    address = _head_address()
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()):
        return None
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=LOOK_S).close()
    except ConnectionRefusedError:
        return address
    except OSError:  # slow, or a firewall: no proof
        return None
    return None


def _head_address() -> str:
    inside: Any = ray._private.worker  # untyped
    client = getattr(inside.global_worker, "gcs_client", None)
    return str(getattr(client, "address", None) or "")


def attempt(limit_s: float, act: Callable[[], object]) -> bool:
    """Try an optional action; return whether it was done in time, without an error."""
    done: list[bool] = []

    def call() -> None:
        try:
            act()
        except Exception:  # any answer of a dying cluster; the action is optional
            return
        done.append(True)

    thread = threading.Thread(target=call, name="attempt", daemon=True)
    thread.start()
    thread.join(limit_s)
    return bool(done)
