"""Samples of a run, put into their seconds."""

from __future__ import annotations

from benchmarks.sltuner.seconds import by_second
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model.subject import Subject


def test_samples_are_sorted_into_seconds() -> None:
    late, early = (
        StageSample(subject=Subject("a"), second=2),
        StageSample(subject=Subject("b"), second=1),
    )
    also = StageSample(subject=Subject("b"), second=2)
    found = by_second([late, early, also])
    assert list(found) == [1, 2]
    assert found[2] == {Subject("a"): late, Subject("b"): also}
