"""Public names that changed: the old one works for one release, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any


def old_names(module: str, now: Mapping[str, Any]) -> Callable[[str], Any]:
    """Return what a module is to have as its `__getattr__`.

    Args:
        module: its name.
        now: {old name: what it is now, which has a `__name__`}.
    """

    def found(name: str) -> Any:
        if name not in now:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} is {now[name].__name__} now; the old name goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return now[name]

    return found
