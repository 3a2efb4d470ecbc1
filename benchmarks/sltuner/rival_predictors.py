"""Rivals of the Gaussian process: isotonic regression and support vectors. Source: [ssg] Table 1.

`Tuning(predictor=…)` takes both, as it takes every class that makes a predictor from a seed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.svm import SVR

from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.linear import Scale
from slackwater.runtime.tune.predict.predictors import PREDICTORS, PredictorFactory


class IsotonicPredictor:
    """A monotone function of the slack alone, rising or falling as the data does."""

    def __init__(self, seed: int = 0) -> None:
        del seed

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Pool adjacent violators."""
        slack = x[:, 0]
        rises = bool(((slack - slack.mean()) * (y - y.mean())).sum() >= 0)
        self._model = IsotonicRegression(increasing=rises, out_of_bounds="clip").fit(slack, y)
        self._deviation = float(np.std(y - self._model.predict(x[:, 0])))

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation."""
        return self._model.predict(x[:, 0]), np.full(len(x), self._deviation)


class SupportVectors:
    """Support vector regression with a radial kernel; deviation from residuals of rows held out."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Fit on four fifths for the deviation, then on all."""
        self._x_scale, self._y_scale = Scale(x), Scale(y)
        at, to = self._x_scale.to(x), self._y_scale.to(y)
        order = self._rng.permutation(len(y))
        out, kept = order[: len(y) // 5], order[len(y) // 5 :]
        trial = SVR(C=10.0, epsilon=0.05).fit(at[kept], to[kept])
        self._deviation = float(np.sqrt(np.mean((to[out] - trial.predict(at[out])) ** 2)))
        self._model = SVR(C=10.0, epsilon=0.05).fit(at, to)

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation."""
        mean = self._y_scale.back(self._model.predict(self._x_scale.to(x)))
        return mean, np.full(len(x), self._deviation * float(self._y_scale.deviation))


RIVALS: Mapping[str, PredictorFactory] = {"isotonic": IsotonicPredictor, "svr": SupportVectors}
MODELS: Mapping[str, PredictorFactory] = {**PREDICTORS, **RIVALS}
"""The four models of [ssg] Table 1, ours first."""
