"""The shedders that are compared: eSPICE as we have it and as the paper has it, and its rivals."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.espice.rivals import BaselineShedder, RandomShedder
from benchmarks.espice.streams import Windows
from benchmarks.espice.trial import Group, MakeShedder, Part, Surge, judged
from slackwater.runtime.shedding.espice import EspiceShedder
from slackwater.runtime.shedding.featured import FeaturedShedder
from slackwater.runtime.shedding.settings import Model
from slackwater.runtime.shedding.shedder import Shedder

ESPICE, BASELINE, RANDOM = "eSPICE", "BL", "random"
DEFAULT, FEATURED, ALL_TYPES = "64 cells", "featured", "BL, all types"
AT_LEAST, LETTER = "at least x", "to the letter"

MANY = 10**9
ONCE = Model(first=MANY, every=MANY, keep=1.0, detect=False, explore=0.0, sample=1.0)
"""Learns once, from all windows there are, and keeps no windows whole; else as by default."""
CELLS = (4, 8, 16, 32, 64)
"""Among which `chosen` chooses. None finer: sizes of windows by time are told to one per cent."""


def espice(
    group: Group,
    seed: int,
    *,
    model: Model = ONCE,
    bin_size: int | None = None,
    kind: type[EspiceShedder] = EspiceShedder,
) -> Shedder:
    """Return eSPICE.

    Args:
        group: what it is to learn from.
        seed: of its draws.
        model: how it learns and cuts.
        bin_size: positions that share a cell; None: as many cells as the model has.
        kind: class of the shedder; FeaturedShedder ranks by what else is known of an event.
    """
    cells = model.cells if bin_size is None else max(1, round(group.size / bin_size))
    return kind(_once(replace(model, cells=cells), group), seed=seed)


def by_chance(group: Group, seed: int) -> Shedder:
    """Return a shedder that ranks nothing."""
    del group
    return RandomShedder(seed=seed, explore=ONCE.explore, sample=ONCE.sample)


def by_types(group: Group, seed: int, *, besides: int = 0) -> Shedder:
    """Return a shedder that ranks types alone.

    Args:
        group: windows that it is to learn from.
        seed: seed of its draws.
        besides: how often each type is taken to stand in the pattern more than it does. 0: those
            that do not stand in it are dropped first. 1: of all types some are dropped.
    """
    repetitions = {
        code: int(times) + besides
        for code, times in enumerate(group.query.repetitions)
        if times + besides
    }
    return BaselineShedder(repetitions, model=_once(ONCE, group), seed=seed)


def chosen(group: Group, seed: int, *, kind: type[EspiceShedder] = EspiceShedder) -> Shedder:
    """Return eSPICE with the cells that do best on the last third of the windows trained on."""
    inner = Group(
        [Part(part.query, _before(part.windows)) for part in group.training],
        [Part(part.query, _behind(part.windows)) for part in group.training],
    )
    if not inner.windows or not any(len(part.windows) for part in inner.judged):
        return espice(group, seed, kind=kind)
    lost = {cells: judged(inner, _with_cells(cells, kind), R2, seed=seed).lost for cells in CELLS}
    return _with_cells(min(lost, key=lambda cells: lost[cells]), kind)(group, seed)


R1, R2 = Surge(1.2), Surge(1.4)
RATES = {"R1": R1, "R2": R2}

PAPER = replace(ONCE, scale="type", smooth=0.0, cutting="at least")
"""Table 1 and Algorithm 2 as they stand."""
MAKERS: dict[str, MakeShedder] = {
    ESPICE: chosen,
    BASELINE: by_types,
    RANDOM: by_chance,
    DEFAULT: espice,
    FEATURED: partial(chosen, kind=FeaturedShedder),
    ALL_TYPES: partial(by_types, besides=1),
    AT_LEAST: partial(espice, model=replace(ONCE, cutting="at least")),
    LETTER: partial(espice, model=PAPER, bin_size=1),
}


def _with_cells(cells: int, kind: type[EspiceShedder]) -> MakeShedder:
    return partial(espice, model=replace(ONCE, cells=cells), kind=kind)


def _once(model: Model, group: Group) -> Model:
    """Return a model that is built when the last window for training is over."""
    return replace(model, first=max(group.windows, 1))


def _cut(windows: Windows) -> int:
    """Return the event behind two thirds of the windows."""
    return int(np.quantile(windows.starts, 2 / 3)) if len(windows) else 0


def _before(windows: Windows) -> Windows:
    return windows.of(windows.stops <= _cut(windows))


def _behind(windows: Windows) -> Windows:
    return windows.of(windows.starts >= _cut(windows))
