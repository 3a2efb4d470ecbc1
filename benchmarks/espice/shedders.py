"""The shedders that are compared: eSPICE as we have it, as the paper has it, and its rivals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from benchmarks.espice.streams import Query
from benchmarks.espice.trial import MakeShedder
from runtime.shedding.machine import shedder_of
from runtime.shedding.settings import Espice, Kind, Model, Overload
from runtime.shedding.shedder import Shedder

ONCE = Model(first=10**9, every=10**9, keep=1.0, detect=False, explore=0.0, sample=1.0)
"""Learns once, from all windows there are; nothing is kept whole to explore."""
_UNUSED = Overload(latency_ns=10**9)


def shedders(bin_size: float, *, more: bool = False) -> Mapping[str, MakeShedder]:
    """Return the shedders, by name.

    Args:
        bin_size: positions of a window that share a cell.
        more: with those that only the tables name.
    """
    found: dict[str, MakeShedder] = {
        "eSPICE": partial(espice, bin_size=bin_size),
        "BL": partial(_other, "baseline", 0),
        "random": partial(_other, "random", 0),
    }
    if more:
        found["BL, all types"] = partial(_other, "baseline", 1)
        found["at least x"] = partial(espice, bin_size=bin_size, model=replace(ONCE, cutting="at least"))
        found["the paper's"] = partial(espice, bin_size=1, model=PAPER)
    return found


PAPER = replace(ONCE, scale="type", smooth=0.0, cutting="at least")
"""Table 1 and Algorithm 2 to the letter."""
