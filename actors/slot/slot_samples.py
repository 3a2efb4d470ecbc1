"""Define a slot's samples for its job's tuner."""

from __future__ import annotations

from typing import NamedTuple

from slackwater.runtime.measure.samples import StageSample

__all__ = ["SlotSamples"]


class SlotSamples(NamedTuple):
    """Samples of a slot's stages for the seconds that are over."""

    samples: list[StageSample]
    left_ns: int
    """Time until the current second is over."""
    refused: list[str] = []  # noqa: RUF012 - of a named tuple: never changed
    """Refusals of commands since the last call."""
