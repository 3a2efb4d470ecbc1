"""Settings of shedding: how a model learns and cuts, and how overload is met."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from slackwater.runtime.errors import SettingError
from slackwater.runtime.shedding.scales import Scale
from slackwater.runtime.shedding.shedder import Shedder
from slackwater.runtime.shedding.thresholds import Cutting
from slackwater.runtime.shown import shown


@dataclass(frozen=True)
class Model:
    """The settings of a model: how it learns utilities, and cuts events by them.

    Attributes:
        cells: places of a window that are told apart, 1 to 65,536. Windows of fewer events tell
            all their positions apart; larger ones share cells, so that each has been seen often
            enough. With as many as a window has events it is the paper's bin size 1.
        scale: rule by which counts become utilities: see `Scale`.
        smooth: each cell is taken to have had so many further events like its type and its place in
            general. So a single hit of a rare place is not a certainty; 0 or more.
        cutting: "exact" drops x in the mean, "at least" all up to the threshold, as the paper.
        first: windows before the model is built at all: random shedding till then.
        every: windows after which it is built again.
        keep: the share of older counts that is kept then, 0 (a jumping window) to 1 (nothing is
            forgotten).
        detect: whether all older counts are dropped when the stream has become another.
        explore: the share of windows that are never shed: else what is dropped could not be seen
            to matter again.
        sample: the share of windows whose events are all counted while nothing is shed.
    """

    cells: int = 64
    scale: Scale = "rank"
    smooth: float = 16.0
    cutting: Cutting = "exact"
    first: int = 32
    every: int = 256
    keep: float = 0.5
    detect: bool = True
    explore: float = 0.02
    sample: float = 0.25

    def __post_init__(self) -> None:
        _whole("cells", self.cells, 1, 65_536)
        _whole("first", self.first, 1)
        _whole("every", self.every, 1)
        _one_of("scale", self.scale, ("rank", "probability", "type"))
        _one_of("cutting", self.cutting, ("exact", "at least"))
        _between("smooth", self.smooth, 0.0, 1e9)
        _between("keep", self.keep, 0.0, 1.0)
        _between("explore", self.explore, 0.0, 0.5)
        _between("sample", self.sample, 0.0, 1.0)
        if not isinstance(self.detect, bool):
            raise SettingError(f"detect={shown(self.detect)} must be True or False")
        if max(self.sample, self.explore) == 0:
            raise SettingError(
                "sample=0 and explore=0 learn from nothing; leave one at its default"
            )


@dataclass(frozen=True)
class Overload:
    """The settings of overload: when shedding starts, how much, and when it stops.

    Attributes:
        latency_ns: LB, from stimulus to egress, more than 0.
        f: the share of the bound at which shedding starts, above 0 and below 1; None if found from
            the model (`choose_f`), 0.8 until it is built.
        low: the share of that at which it stops, above 0, at most 1.
        horizon_ns: rates are means over this time; None if it is half of the bound.
        drain: whether what waits above f is worked off within a bound; the paper lets it stay.
    """

    latency_ns: int
    f: float | None = None
    low: float = 0.5
    horizon_ns: int | None = None
    drain: bool = True

    def __post_init__(self) -> None:
        _whole("latency_ns", self.latency_ns, 1)
        if self.f is not None and not (_is_number(self.f) and 0 < self.f < 1):
            raise SettingError(
                f"f={shown(self.f)} must be above 0 and below 1: the share of the latency bound at "
                "which shedding starts; omit it to have it chosen"
            )
        if not (_is_number(self.low) and 0 < self.low <= 1):
            raise SettingError(f"low={shown(self.low)} must be above 0 and at most 1")
        if self.horizon_ns is not None:
            _whole("horizon_ns", self.horizon_ns, 1)

    @property
    def first_f(self) -> float:
        """Share of the bound at which shedding starts, until a better one is learnt."""
        return PLAIN_F if self.f is None else self.f


PLAIN_F = 0.8
"""Share of the bound at which shedding starts until a better one is known: as in the experiments
of [espice]."""
Drops = Literal["stretches", "events", "pairs"]


@dataclass(frozen=True)
class SheddingSettings(ABC):
    """The settings of shedding: bound, model, seed, and a shedder of events.

    Attributes:
        overload: the bound, and how it is kept.
        model: how utilities are learnt.
        seed: the seed of all draws, a whole number from 0 to 2^63 − 1.
        drops: "stretches" of the stream are not looked at, and nothing between them is dropped, so
            nothing is ranked. "events" are dropped from all windows that wait for a match, or from
            none: that saves work where windows share it. "pairs" of an event and a window are
            dropped each by itself, as [espice] does: that saves work where an event costs something
            in each window.
        feature: a feature of events, as the owner of the rows understands it: here it is only
            passed on. None if events have none.
    """

    overload: Overload
    model: Model = field(default_factory=Model)
    seed: int = 0
    drops: Drops = "events"
    feature: object | None = None
    units: ClassVar[tuple[Drops, ...]] = ("events", "pairs")
    """The values that `drops` may have."""

    def __post_init__(self) -> None:
        _of_espice("overload", self.overload, Overload)
        _of_espice("model", self.model, Model)
        _whole("seed", self.seed, 0, 2**63 - 1)
        _one_of("drops", self.drops, self.units)
        if self.drops == "stretches" and self.feature is not None:
            raise SettingError(
                "drops='stretches' ranks no events, so feature= has no effect; write "
                "drops='events' or 'pairs'"
            )

    @property
    def ranks(self) -> bool:
        """Whether events are ranked, so that there is something to learn."""
        return self.drops != "stretches"

    @property
    def most_dropped(self) -> float:
        """Largest share of the droppable work that is dropped: some windows are never touched."""
        return 1 - self.model.explore if self.drops == "pairs" else 1.0

    @property
    @abstractmethod
    def ranking(self) -> str:
        """The ranking of events, as text."""

    @abstractmethod
    def shedder(self, repetitions: Mapping[int, int]) -> Shedder:
        """Return a fresh shedder, which says which events go.

        Args:
            repetitions: {code of a type: how often it stands in the pattern}, as far as the pattern
                names types.
        """

    @property
    def text(self) -> str:
        """The line of `explain` about it."""
        what = self.ranking if self.ranks else "stretches of the stream"
        return f"{what}, to keep {self.overload.latency_ns / 1e9:g} s"


def _of_espice(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise SettingError(
            f"{name}={shown(value)} is not of class {kind.__name__}; write "
            f"sw.shedding.espice(latency='1s', drops='events').{name}"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(name: str, value: object, least: int, most: int | None = None) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < least
        or (most is not None and value > most)
    ):
        upper = f"{least} or more" if most is None else f"from {least} to {most}"
        raise SettingError(f"{name}={shown(value)} must be a whole number, {upper}")


def _between(name: str, value: object, least: float, most: float) -> None:
    if not (_is_number(value) and least <= value <= most):  # type: ignore[operator]
        raise SettingError(f"{name}={shown(value)} must be a number from {least:g} to {most:g}")


def _one_of(name: str, value: object, words: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in words:
        raise SettingError(f"{name}={shown(value)} is none of {', '.join(map(repr, words))}")
