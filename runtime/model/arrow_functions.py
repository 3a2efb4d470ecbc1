"""Arrow's functions of columns, imported where one is called, not where it might be.

They take 30 to 60 ms to import, and a slot's process whose columns are numbers needs none. One that
will need some imports them before its job begins (`actors/slot/actor.py`).
"""

from __future__ import annotations

from types import ModuleType

__all__ = ["arrow_functions"]


def arrow_functions() -> ModuleType:
    """Return `pyarrow.compute`."""
    from pyarrow import compute  # noqa: PLC0415 (slow to import)

    functions: ModuleType = compute
    return functions
