"""Floors of the experiments: what the best policy makes of a run that it knows beforehand.

A dynamic program over the seconds (one gate), or a search (two gates), found the plans, and the
simulator ran each. Both are at commit b549b623, with attacks and a bound from below; a floor does
not change with the code of a policy. docs/decisions/2026-11-22-floors.md has the method.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.frame import Options

__all__ = ["Floor", "floor_of"]


class Floor(NamedTuple):
    """Rows of a clairvoyant run: slack-ready in the judged seconds, and results in all."""

    slack_ready: int
    detected: int

    def allowed(self, events: int) -> float:
        """Return how many slack-ready rows are near the floor, of a run with so many events."""
        return 1.25 * self.slack_ready + 0.01 * events


SEED = 1
FLOORS = {
    "sltuner-zipf": Floor(7_391, 98_712),
    "sltuner-drift": Floor(72_574, 18_870),
    "sltuner-chain": Floor(77_948, 98_558),
    "sltuner-warsaw-20s": Floor(155_180, 242_462),
    "sltuner-warsaw-30s": Floor(157_830, 242_474),
    "sltuner-warsaw-40s": Floor(161_040, 242_474),
    "sltuner-warsaw-60s": Floor(64_504, 242_474),
}
"""{experiment: floor of its full run}, of the streams of `SEED`."""


def floor_of(name: str, options: Options) -> Floor | None:
    """Return the floor of an experiment; None of a quick run or of another seed."""
    return None if options.quick or options.seed != SEED else FLOORS.get(name)
