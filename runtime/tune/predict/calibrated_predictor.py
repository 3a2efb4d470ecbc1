"""A forecast mended by what a model has learned, with deviations as large as they were right."""

from __future__ import annotations

from collections import deque

import numpy as np

from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.predictors import Predictor

SECONDS, LEAST = 300, 20
"""By how many seconds a model is judged at most, and at least."""
MOST_STRETCH = 10.0
"""How far its deviations are stretched for it."""

UNSURE = 0.1
"""How sure a forecast is of more than was ever seen: its deviation is this share of the excess."""


class CalibratedPredictor:
    """Predicts by a forecast, by a model of what that one leaves, and by how far off both were.

    What the model has never seen is left to the forecast, which is then less sure: a skew that
    grows after a calm half minute is nothing that the half minute could teach. So the model is
    asked about the nearest of what it has seen, feature by feature.

    Args:
        predictor: learns what the forecast leaves.
        forecast: the column of the features that has it.
    """

    def __init__(self, predictor: Predictor, *, forecast: int) -> None:
        self._predictor, self._forecast = predictor, forecast
        self._off: deque[float] = deque(maxlen=SECONDS)  # in deviations

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Learn what the forecast leaves of y, shape (n,)."""
        self._predictor.fit(x, y - x[:, self._forecast])
        self._range = x.min(axis=0), x.max(axis=0)
        self._most = float(x[:, self._forecast].max())

    def judge(self, x: FloatArray, y: FloatArray) -> None:
        """Compare with what came of moments that it has not learned from."""
        mean, deviation = self._plainly(x)
        self._off.extend(np.abs(y - mean) / np.maximum(deviation, 1e-9))
        self._most = max(self._most, float(x[:, self._forecast].max()))

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation.

        Raises:
            ArithmeticError: they are no numbers.
        """
        mean, deviation = self._plainly(x)
        return mean, deviation * self.stretch

    def _plainly(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, deviation = map(np.asarray, self._predictor.predict(np.clip(x, *self._range)))
        if mean.shape != (len(x),) or deviation.shape != (len(x),):
            raise ValueError(
                f"predict(x) returned shapes {mean.shape} and {deviation.shape}; return mean and "
                f"deviation, each ({len(x)},)"
            )
        if not (np.isfinite(mean).all() and np.isfinite(deviation).all()):
            raise ArithmeticError("it predicts what is no number")
        forecast = x[:, self._forecast]
        unseen = np.maximum(forecast - self._most, 0.0)
        return mean + forecast, np.hypot(deviation, UNSURE * unseen)

    @property
    def stretch(self) -> float:
        """So that 98 of 100 lie within the 2.33 deviations of a normal distribution; at least 1."""
        if len(self._off) < LEAST:
            return 1.0
        return float(np.clip(np.quantile(self._off, 0.98) / 2.33, 1.0, MOST_STRETCH))
