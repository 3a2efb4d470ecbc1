"""What a slot tells its job's tuner, which needs nothing else of a slot."""

from __future__ import annotations

from typing import NamedTuple

from slackwater.runtime.measure.samples import StageSample

__all__ = ["SlotSamples"]


class SlotSamples(NamedTuple):
    """What a slot's stages did in the seconds that are over."""

    samples: list[StageSample]
    left_ns: int
    """Until the second that is counted now is over."""
    refused: list[str] = []  # noqa: RUF012 - of a named tuple: nobody adds to it
    """Why commands could not be carried out since the last time."""
