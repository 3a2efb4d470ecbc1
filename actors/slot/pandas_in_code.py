"""Whether the code of users that a slot is to run may want pandas: found by its name in it.

Then it is loaded before the start, rather than in the latency of the first event: 0.2 s. What is
overlooked, a package of the user's that is installed and imports pandas only as it is called, gets
it late, and is right all the same (`without_pandas.py`).
"""

from __future__ import annotations

import gc
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

__all__ = ["mention_pandas"]

_NAME = "pandas"
_INSTALLED = (*(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")), "-packages/")
"""In the paths of what is no user's own: Python's, and all in site-packages or dist-packages."""
MOST_OBJECTS = 20_000
"""Of what hangs on the code; a user's input may hold rows. Beyond, it may well want pandas."""


def mention_pandas(things: Iterable[object]) -> bool:
    """Return whether the user's modules here, or functions and classes that came by value, do.

    Args:
        things: what holds the code: stages, orders.
    """
    return any(_mentions(path) for path in _own_modules()) or _reach_pandas(things)


def _own_modules() -> Iterator[Path]:
    for dotted, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if (
            file is not None
            and dotted.partition(".")[0] != "slackwater"
            and not any(part in file for part in _INSTALLED)
        ):
            yield Path(file)


def _mentions(path: Path) -> bool:
    try:
        return _NAME.encode() in path.read_bytes()
    except OSError:  # in an archive, or gone
        return True


def _reach_pandas(things: Iterable[object]) -> bool:
    """Go through all that hangs on these, up to what was imported by its name."""
    seen: set[int] = set()
    left = list(things)
    while left:
        thing = left.pop()
        if id(thing) in seen or _is_imported(thing):
            continue
        seen.add(id(thing))
        if isinstance(thing, CodeType):
            words = (*thing.co_names, *thing.co_consts)
            if any(isinstance(word, str) and _NAME in word for word in words):
                return True
            left += [one for one in thing.co_consts if isinstance(one, CodeType)]
        elif len(seen) > MOST_OBJECTS:
            return True
        else:
            left += gc.get_referents(thing)
    return False


def _is_imported(thing: object) -> bool:
    """Whether it is a module, or a function or class of one that is there by its name."""
    if isinstance(thing, ModuleType):
        return True
    if isinstance(thing, FunctionType):
        module = sys.modules.get(thing.__module__)
        return module is not None and thing.__globals__ is vars(module)
    if isinstance(thing, type):
        found: object = sys.modules.get(thing.__module__)
        for name in thing.__qualname__.split("."):
            found = getattr(found, name, None)
        return found is thing
    return False
