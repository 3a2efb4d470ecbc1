"""Forecast corrected by a model, with deviations calibrated by past errors."""

from __future__ import annotations

from collections import deque

import numpy as np

from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.predictors import Predictor

SECONDS, LEAST = 300, 20
"""Most and fewest seconds by which a model is judged."""
MOST_STRETCH = 10.0
"""Largest factor on a model's deviations."""

UNSURE = 0.1
"""Deviation of a forecast beyond all that was seen, as a share of the excess."""


class CalibratedPredictor:
    """Predicts by a forecast, a model of its residual, and past errors of both.

    The forecast alone answers for features outside the range that the model has seen, with a larger
    deviation: a calm half minute cannot teach a model how a skew grows. So the model gets the
    nearest features that it has seen, column by column.

    Args:
        predictor: learns the residual of the forecast.
        forecast: column of the features that has the forecast.
    """

    def __init__(self, predictor: Predictor, *, forecast: int) -> None:
        self._predictor, self._forecast = predictor, forecast
        self._off: deque[float] = deque(maxlen=SECONDS)  # past errors, in deviations

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Learn the residual of the forecast from y, shape (n,)."""
        self._predictor.fit(x, y - x[:, self._forecast])
        self._range = x.min(axis=0), x.max(axis=0)
        self._most = float(x[:, self._forecast].max())

    def judge(self, x: FloatArray, y: FloatArray) -> None:
        """Compare predictions with the results y of moments outside the training data."""
        mean, deviation = self._plainly(x)
        self._off.extend(np.abs(y - mean) / np.maximum(deviation, 1e-9))
        self._most = max(self._most, float(x[:, self._forecast].max()))

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation.

        Raises:
            ArithmeticError: one of them is not finite.
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
            raise ArithmeticError("it predicts a value that is not a number")
        forecast = x[:, self._forecast]
        unseen = np.maximum(forecast - self._most, 0.0)
        return mean + forecast, np.hypot(deviation, UNSURE * unseen)

    @property
    def stretch(self) -> float:
        """Factor by which 98 of 100 errors lie within 2.33 deviations; at least 1."""
        if len(self._off) < LEAST:
            return 1.0
        return float(np.clip(np.quantile(self._off, 0.98) / 2.33, 1.0, MOST_STRETCH))
