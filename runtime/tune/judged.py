"""Deviations that are believed as far as they were right so far."""

from __future__ import annotations

from collections import deque

import numpy as np

from runtime.tune.forecast import FloatArray
from runtime.tune.predict import Predictor

SECONDS, LEAST = 300, 20
"""By how many seconds a model is judged at most, and at least."""
MOST_STRETCH = 10.0
"""How far its deviations are stretched for it."""


class Judged:
    """A predictor whose deviations are stretched by how far off it was on what came after.

    Args:
        predictor: what is judged.
    """

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor
        self._off: deque[float] = deque(maxlen=SECONDS)  # in deviations

    def judge(self, x: FloatArray, y: FloatArray) -> None:
        """Compare with what came of moments that it has not learned from."""
        mean, deviation = self.predictor.predict(x)
        self._off.extend(np.abs(y - mean) / np.maximum(deviation, 1e-9))

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation."""
        mean, deviation = self.predictor.predict(x)
        return mean, deviation * self.stretch

    @property
    def stretch(self) -> float:
        """So that 98 of 100 lie within the 2.33 deviations of a normal distribution; at least 1."""
        if len(self._off) < LEAST:
            return 1.0
        return float(np.clip(np.quantile(self._off, 0.98) / 2.33, 1.0, MOST_STRETCH))
