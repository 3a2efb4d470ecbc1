"""Limit the time of Ray calls that have no limit.

Ray asks its head (gcs_server) for nodes, names and keys, and waits for the answer: for ever, if the
head is gone. So such a call runs in a thread that may be abandoned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from slackwater.runtime.errors import ClusterError

__all__ = ["ASK_S", "attempt", "within"]

_T = TypeVar("_T")
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
    thread.join(limit_s)
    if returned:
        return returned[0]
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
