"""A process that is killed at its k-th operation on files, whichever that is."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable

OPERATIONS = frozenset({"open", "os.rename", "os.remove", "os.link", "os.mkdir", "os.truncate"})
DIED, FAILED = 9, 3


def killed_at(number: int, work: Callable[[], None], *, under: str) -> bool:
    """Do the work in a process of its own that ends, as if killed, before its n-th operation.

    Args:
        number: of the operation, from 1; those on paths outside `under` do not count.
        work: what to do.
        under: a folder.

    Returns:
        Whether it died of that. If not, the work was done before.
    """
    with warnings.catch_warnings():  # only this thread is needed there
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            left = number

            def count(event: str, arguments: tuple[object, ...]) -> None:
                nonlocal left
                if event in OPERATIONS and str(arguments[0]).startswith(under):
                    left -= 1
                    if left == 0:
                        os._exit(DIED)

            sys.addaudithook(count)
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(FAILED)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, DIED), f"the work failed by itself: exit code {code}"
    return code == DIED
