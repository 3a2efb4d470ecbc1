"""Policies in tuners of their own processes: as a user writes one, or never to return."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from slackwater.actors.tuning import tuner
from slackwater.runtime.control.commands import Command, Move, Warn
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model.subject import Subject
from tests.support.rules import release

SLACK_NS = 400_000_000


class OwnPolicy:
    """As a user writes one: wants what no slot can do yet, and warns."""

    def begin(self) -> Sequence[Command]:
        return [release("gate", SLACK_NS), Move(Subject("gate"), "node-9")]

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[Command]:
        del second, samples
        return [Warn(Subject("gate"), "buses are late")]


class StuckTuner(tuner.Tuner):
    """One whose policy never lets go of the interpreter: no other thread of Python's runs again."""

    def __init__(self, *args: Any, **options: Any) -> None:
        tuner.make_policy = lambda *_, **__: all(itertools.repeat(True))
        super().__init__(*args, **options)
