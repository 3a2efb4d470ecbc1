"""Shedders of each kind, ours and rivals, and the operator that sheds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.espice.rivals import BaselineShedder, RandomShedder
from slackwater.runtime.patterns.operator.machine import pattern_machine
from slackwater.runtime.patterns.operator.step import PatternStep
from slackwater.runtime.shedding.contest import ContestShedder
from slackwater.runtime.shedding.espice import EspiceShedder
from slackwater.runtime.shedding.featured import FeaturedShedder
from slackwater.runtime.shedding.settings import Model
from slackwater.runtime.shedding.shedder import Shedder
from slackwater.runtime.shedding.wrapper.shed_pattern import EventShedding, SheddingPattern

REPETITIONS = {0: 1, 1: 1}
SHEDDERS: dict[str, Callable[[Model, int], Shedder]] = {
    "espice": lambda model, seed: EspiceShedder(model, seed=seed),
    "featured": lambda model, seed: FeaturedShedder(model, seed=seed),
    "contest": lambda model, seed: ContestShedder(model, seed=seed),
    "baseline": lambda model, seed: BaselineShedder(REPETITIONS, model=model, seed=seed),
    "random": lambda model, seed: RandomShedder(
        seed=seed, explore=model.explore, sample=model.sample
    ),
}
"""{kind: makes a shedder, by model and seed}."""


@dataclass(frozen=True)
class Featured(EventShedding):
    """Shedding by the richer model, whether or not it loses fewer matches."""

    @property
    def ranking(self) -> str:
        return "featured"

    def shedder(self, repetitions: object) -> Shedder:
        del repetitions
        return FeaturedShedder(self.model, seed=self.seed)


def shed_machine(step: PatternStep, *, most_kept_rows: int) -> SheddingPattern:
    """Return the machine of a pattern with `shed`."""
    machine = pattern_machine(step, most_kept_rows=most_kept_rows)
    assert isinstance(machine, SheddingPattern)
    return machine
