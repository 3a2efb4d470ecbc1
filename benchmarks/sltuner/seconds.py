"""Samples of a run, put into their seconds."""

from __future__ import annotations

from collections.abc import Iterable

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.whole_steps import by_step
from slackwater.runtime.model.subject import Subject


def by_second(samples: Iterable[StageSample]) -> dict[int, dict[Subject, StageSample]]:
    """Return {second: {step: sample}}, seconds ascending."""
    seconds: dict[int, list[StageSample]] = {}
    for sample in samples:
        seconds.setdefault(sample.second, []).append(sample)
    return {second: by_step(seconds[second]) for second in sorted(seconds)}
