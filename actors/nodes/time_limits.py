"""Ray calls that have no time limit of their own, made with one.

Ray asks its head (gcs_server) for nodes, names and keys, and waits for as long as that takes: for
ever, if it is gone. So such a call is made in a thread that may be left behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from slackwater.runtime.errors import ClusterError

__all__ = ["ASK_S", "attempt", "within"]

_T = TypeVar("_T")
ASK_S = 10.0
"""For a question to the cluster's head; it takes a millisecond, more on a busy machine."""


def within(limit_s: float, ask: Callable[..., _T], *args: Any, what: str, **named: Any) -> _T:
    """Return `ask(*args, **named)`; raise what it raises.

    Args:
        limit_s: how long to wait for it.
        ask: is called in a thread of its own, which is left behind if it does not return.
        args: what it is called with.
        what: it is, for the error: "which nodes there are".
        named: more of what it is called with.

    Raises:
        ClusterError: it did not return in time, or its connection to Ray broke.
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
    """Do what is nice to have done; return whether it was done in time, and without an error."""
    done: list[bool] = []

    def call() -> None:
        try:
            act()
        except Exception:  # whatever a dying cluster answers: its caller can do without
            return
        done.append(True)

    thread = threading.Thread(target=call, name="attempt", daemon=True)
    thread.start()
    thread.join(limit_s)
    return bool(done)
