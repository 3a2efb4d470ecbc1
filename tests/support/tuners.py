"""Tuners whose policies are difficult, in their own processes: slow, broken, or never to return."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import actors.tuning.tuner
from runtime.control import Command, Move, Warn
from runtime.measure.samples import StageSample
from runtime.tune import SetRelease
from tests.support.rules import release

SLOW_S = 4.0
SLACK_NS = 400_000_000


class DifficultPolicy:
    """Sets a slack, then takes longer than a second to decide nothing, and then raises."""

    name = "difficult"

    def begin(self) -> Sequence[SetRelease]:
        return [release("gate", SLACK_NS)]

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[SetRelease]:
        del samples
        if second == 0:
            threading.Event().wait(SLOW_S)
        if second == 1:
            raise ZeroDivisionError("no model fits")
        return [release("gate", -7)] if second == 2 else []


class OwnPolicy:
    """As a user writes one: wants what no slot can do yet, and warns."""

    def begin(self) -> Sequence[Command]:
        return [release("gate", SLACK_NS), Move("gate", "node-9")]

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[Command]:
        del second, samples
        return [Warn("gate", "buses are late")]


class DifficultTuner(actors.tuning.tuner.Tuner):
    def __init__(self, *args: Any, **options: Any) -> None:
        actors.tuning.tuner.make_policy = lambda *_, **__: DifficultPolicy()
        super().__init__(*args, **options)


class StuckTuner(actors.tuning.tuner.Tuner):
    """One whose policy never lets go of the interpreter: no other thread of Python's runs again."""

    def __init__(self, *args: Any, **options: Any) -> None:
        actors.tuning.tuner.make_policy = lambda *_, **__: all(itertools.repeat(True))
        super().__init__(*args, **options)
