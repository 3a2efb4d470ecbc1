"""A slot's process without pandas, which Arrow would load for 0.2 s and 40 MB, in case of need.

Arrow looks for pandas once, at its first conversion of an array and of a list: what it converts may
be of pandas. Here it looks before there is any, and again when somebody imports it:

```
Arrow's first look ──▶ hidden             who knows nothing of pandas never loads it
import pandas      ──▶ found ──▶ Arrow looks again       as if it had been there from the start
```
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["leave_out_pandas", "load_pandas"]

_NAME = "pandas"


def leave_out_pandas() -> None:
    """Have Arrow look for pandas now, and not find it. Before the first conversion, else too late.

    Whoever imports pandas later, or asks a table for a frame (`to_pandas`), gets it as ever, and
    from then on Arrow knows its series, frames and NaN as ever.
    """
    if _NAME in sys.modules:
        return
    finder = _Pandas()
    sys.meta_path.insert(0, finder)
    pa.array(np.zeros(1))
    pa.array([None])
    finder.hidden_from = None


def load_pandas() -> None:
    """Load it, if it is installed: what comes may want it."""
    with contextlib.suppress(ImportError):
        importlib.import_module(_NAME)


class _Pandas(MetaPathFinder):
    """Knows of pandas alone: not there for the thread that made it, at first; then as it is."""

    def __init__(self) -> None:
        self.hidden_from: int | None = threading.get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where pandas is, with a loader that tells Arrow of it; None for all else.

        Raises:
            ModuleNotFoundError: it is hidden from this thread.
        """
        if name != _NAME:
            return None
        if threading.get_ident() == self.hidden_from:
            raise ModuleNotFoundError(f"no {name} in this process", name=name)
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find else None
            if spec is not None:
                _tell_arrow(spec.loader)
                return spec
        return None


def _tell_arrow(loader: Any) -> None:
    """Have Arrow look again when this has loaded a module, the next one."""
    load = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        loader.exec_module = load  # of an archive it loads the rest of pandas, too
        load(module)
        # What Arrow's own conversions ask where they must have pandas. It has looked in vain
        # before, so it looks again. A pandas that is too old for it is none to it, as ever.
        with contextlib.suppress(ImportError):
            _ = pa.lib._pandas_api.pd

    loader.exec_module = exec_module
