"""Check by its name whether the users' code of a slot may want pandas.

If so, pandas is loaded before the start: its 0.2 s would otherwise delay the first event. The check
can miss an installed package of the user's that imports pandas only when called: that gets pandas
late, but correctly (`without_pandas.py`).
"""

from __future__ import annotations

import gc
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.steps import SinkStep

__all__ = ["mention_pandas", "take_nanoseconds"]

_NAME = "pandas"
_INSTALLED = (*(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")), "-packages/")
"""Parts of paths that are not the user's code: Python's, site-packages and dist-packages."""
MOST_OBJECTS = 20_000
"""Most objects that are searched; an input may hold rows. Beyond, assume pandas."""


def mention_pandas(things: Iterable[object]) -> bool:
    """Return whether users' modules, or functions and classes sent by value, mention pandas.

    Args:
        things: holders of the code: stages, orders.
    """
    return any(_mentions(path) for path in _own_modules()) or _reach_pandas(things)


def take_nanoseconds(stages: Iterable[Stage]) -> bool:
    """Return whether one of these sinks gets times in nanoseconds.

    Without pandas, `rows.to_pylist()` of such times is an error of Arrow.
    """
    sinks = [stage.step for stage in stages if isinstance(stage.step, SinkStep)]
    return any("[ns" in str(kind) for sink in sinks for kind in sink.schema.types)


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
    except OSError:  # in an archive, or removed
        return True


def _reach_pandas(things: Iterable[object]) -> bool:
    """Search all objects reachable from these, up to those imported by name."""
    visited: set[int] = set()
    left = list(things)
    while left:
        thing = left.pop()
        if id(thing) in visited or _is_imported(thing):
            continue
        visited.add(id(thing))
        if isinstance(thing, CodeType):
            words = (*thing.co_names, *thing.co_consts)
            if any(isinstance(word, str) and _NAME in word for word in words):
                return True
            left += [code for code in thing.co_consts if isinstance(code, CodeType)]
        elif len(visited) > MOST_OBJECTS:
            return True
        else:
            left += gc.get_referents(thing)
    return False


def _is_imported(thing: object) -> bool:
    """Whether a thing is a module, or found in one by its name."""
    if isinstance(thing, ModuleType):
        return True
    if isinstance(thing, FunctionType):
        module = sys.modules.get(thing.__module__)
        return module is not None and thing.__globals__ is vars(module)
    if isinstance(thing, type):
        named: object = sys.modules.get(thing.__module__)
        for name in thing.__qualname__.split("."):
            named = getattr(named, name, None)
        return named is thing
    return False
