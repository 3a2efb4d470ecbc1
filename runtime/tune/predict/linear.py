"""Linear predictor, and the scale of features that all predictors use."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.tune.predict.forecast import FloatArray

RIDGE = 10.0
"""Examples that count against each slope: half a minute must not teach a model 13 slopes."""


class Scale:
    """Scale of each column to mean 0 and deviation 1; a constant column becomes 0."""

    def __init__(self, values: FloatArray) -> None:
        self._mean = values.mean(axis=0)
        deviation = values.std(axis=0)
        self.deviation = np.where(deviation > 1e-9 * (1.0 + np.abs(self._mean)), deviation, 1.0)

    def to(self, values: FloatArray) -> FloatArray:
        """Return values on the scale."""
        return np.asarray((values - self._mean) / self.deviation, dtype=np.float64)

    def back(self, values: FloatArray) -> FloatArray:
        """Return values on the scale in their original units."""
        return np.asarray(values * self.deviation + self._mean, dtype=np.float64)


class LinearPredictor:
    """Least squares with a ridge; deviation from the residuals and the distance to the data.

    Args:
        seed: seed, which is unused here.
        ridge: number of examples that count against each slope.
    """

    def __init__(self, seed: int = 0, *, ridge: float = RIDGE) -> None:
        del seed
        self._ridge = ridge

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Solve the normal equations."""
        self._scale = Scale(x)
        design = self._design(x)
        normal = design.T @ design
        normal[np.diag_indices_from(normal)] += np.r_[1e-6, np.full(len(normal) - 1, self._ridge)]
        self._inverse = np.linalg.inv(normal)
        self._weights = self._inverse @ (design.T @ y)
        free = max(len(y) - design.shape[1], 1)
        self._variance = float(((y - design @ self._weights) ** 2).sum()) / free

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation."""
        design = self._design(x)
        leverage = ((design @ self._inverse) * design).sum(axis=1)
        return design @ self._weights, np.sqrt(self._variance * (1.0 + leverage))

    def _design(self, x: FloatArray) -> FloatArray:
        return np.column_stack((np.ones(len(x)), self._scale.to(x)))
