"""A slot's process without pandas, which Arrow would load for 0.2 s and 40 MB, in case of need.

Arrow looks for pandas once, at its first conversion of an array and of a list: what it converts may
be of pandas. Where no code of the user's runs nothing is.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

import numpy as np
import pyarrow as pa

__all__ = ["leave_out_pandas"]

_NAME = "pandas"


def leave_out_pandas() -> None:
    """Have Arrow look for pandas now, and not find it. Before the first conversion, else too late.

    For the rest of this process Arrow takes nothing for pandas' own; whoever imports pandas, or
    asks a table for a frame (`to_pandas`), gets it as ever.
    """
    if _NAME in sys.modules:
        return
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array(np.zeros(1))
        pa.array([None])
    finally:
        sys.meta_path.remove(hidden)


class _Hidden(MetaPathFinder):
    """Says that there is no pandas, to the thread that made it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Raise ModuleNotFoundError for pandas; know nothing of all else."""
        del path, target
        if name == _NAME and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"no {name} in this process", name=name)
