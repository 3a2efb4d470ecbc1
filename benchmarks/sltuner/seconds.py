"""Samples of a run, put into their seconds."""

from __future__ import annotations

from collections.abc import Iterable

from slackwater.runtime.measure.samples import StageSample


def by_second(samples: Iterable[StageSample]) -> dict[int, dict[str, StageSample]]:
    """Return {second: {stage: sample}}, seconds ascending."""
    seconds: dict[int, dict[str, StageSample]] = {}
    for sample in samples:
        seconds.setdefault(sample.second, {})[sample.stage] = sample
    return dict(sorted(seconds.items()))
