"""Keep pandas out of a slot's process unless user code imports it.

Arrow would load it, for 0.2 s and 40 MB, though most slots never use it.

Arrow looks for pandas once, at its first conversion of an array and of a list, since the values may
be pandas'. Here it looks before pandas can be found, and again when user code imports pandas:

```
Arrow's first look ──▶ hidden             never loaded without an import
import pandas      ──▶ found ──▶ Arrow looks again       as if it had been there at first
```
"""

from __future__ import annotations

import contextlib
import importlib
import os
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
SWITCH = "SLACKWATER_PANDAS"
"""Environment variable: with `arrow`, Arrow loads pandas as usual, should a new one look again."""


def leave_out_pandas() -> None:
    """Make Arrow look for pandas now, and not find it; call before the first conversion.

    A later import of pandas, or a call of `to_pandas`, works as usual. From then on Arrow knows its
    series, frames and NaN as usual.
    """
    if _NAME in sys.modules or os.environ.get(SWITCH) == "arrow":
        return
    finder = _Pandas()
    sys.meta_path.insert(0, finder)
    pa.array(np.zeros(1))
    pa.array([None])
    finder.hidden_from = None


def load_pandas() -> None:
    """Load pandas, if installed, for stages that may want it."""
    with contextlib.suppress(ImportError):
        importlib.import_module(_NAME)


class _Pandas(MetaPathFinder):
    """Finds pandas alone: hidden from its maker's thread at first, then as usual."""

    def __init__(self) -> None:
        self.hidden_from: int | None = threading.get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return pandas' spec, with a loader that informs Arrow; None if another module.

        Raises:
            ModuleNotFoundError: pandas is hidden from this thread.
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
    """Make Arrow look again once this loader has loaded its next module."""
    load = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        loader.exec_module = load  # an archive's loader also loads the rest of pandas
        load(module)
        # Arrow's own conversions read this where they need pandas. Its first look was in vain, so
        # it looks again. It ignores a pandas that is too old, as usual.
        with contextlib.suppress(ImportError):
            _ = pa.lib._pandas_api.pd

    loader.exec_module = exec_module
