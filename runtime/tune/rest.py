"""What a stage that is not tuned takes: it has no slack to ask about, only a course to follow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.measure.samples import StageSample
from runtime.tune.forecast import FloatArray

RECENT_S = 30
"""Before it is trained, and to judge now: so many seconds with work in them."""


class RestModel:
    """The next second's latency from the last ones' by least squares; mean and deviation in ns."""

    def __init__(self) -> None:
        self._weights: FloatArray | None = None
        self._deviation = 0.0

    def fit(self, history: Sequence[StageSample]) -> None:
        """Learn from samples by seconds; those without work say nothing."""
        took = _took(history)
        if len(took) < 2 * RECENT_S:
            return
        x = np.array([_course(took[max(k - RECENT_S, 0) : k]) for k in range(5, len(took))])
        y = took[5:]
        scale = max(float(np.abs(took).max()), 1.0)
        normal = (x / scale).T @ (x / scale) + 1e-6 * len(y) * np.eye(x.shape[1])
        self._weights = np.asarray(np.linalg.solve(normal, (x / scale).T @ (y / scale)), np.float64)
        self._deviation = float(np.std(y - x @ self._weights))

    def predict(self, history: Sequence[StageSample]) -> tuple[float, float]:
        """Return mean and deviation for the second after the last one; 0 without any work yet."""
        recent = list(history)[-4 * RECENT_S :]
        took = _took(recent)[-RECENT_S:]
        if not len(took):
            return 0.0, 0.0
        course = _course(took)
        if self._weights is None:
            return float(course[1]), float(took.std())
        return max(float(course @ self._weights), 0.0), max(self._deviation, float(took.std()) / 3)


def _took(history: Sequence[StageSample]) -> FloatArray:
    took = [float(s.latency_ns + s.comm_ns) for s in history if s.rows]
    return np.array(took, dtype=np.float64)


def _course(took: FloatArray) -> FloatArray:
    """Return the last value, and means of the last 5 and of all."""
    return np.array([took[-1], took[-5:].mean(), took.mean()])
