"""Four ways to predict a number from features, behind one protocol.

Source: [ssg] §5.2.1, Eq. 7 and 8, and the rivals of Table 1. "The user can easily plug-in different
prediction techniques": whatever has `fit` and `predict` will do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.gaussian import GaussianProcess
from slackwater.runtime.tune.predict.linear import LinearPredictor, Scale

# scikit-learn takes a second to import: each class does it when it first fits.


class Predictor(Protocol):
    """Learns a number from examples, and says how sure it is."""

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Learn, forgetting earlier examples; what was found of the model's own shape may stay.

        Args:
            x: shape (n, features), finite, in the order of time; column 0 is the slack.
            y: shape (n,), finite.
        """
        ...

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation, each (m,), for features of shape (m, features)."""
        ...


PredictorFactory = Callable[[int], Predictor]
"""seed -> a new predictor."""


def make_predictor(predictor: str | PredictorFactory, *, seed: int = 0) -> Predictor:
    """Return a new predictor.

    Args:
        predictor: "gp", "linear", "isotonic", "svr", or what makes one from a seed.
        seed: of what it draws.

    Raises:
        SettingError: there is none of that name.
    """
    if not isinstance(predictor, str):
        return predictor(seed)
    if predictor not in PREDICTORS:
        raise SettingError(f"predictor={predictor!r} is none of {', '.join(map(repr, PREDICTORS))}")
    return PREDICTORS[predictor](seed)


class IsotonicPredictor:
    """A monotone function of the slack alone, rising or falling as the data does."""

    def __init__(self, seed: int = 0) -> None:
        del seed

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Pool adjacent violators."""
        from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415

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
        from sklearn.svm import SVR  # noqa: PLC0415

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


PREDICTORS: dict[str, PredictorFactory] = {
    "gp": GaussianProcess,
    "linear": LinearPredictor,
    "isotonic": IsotonicPredictor,
    "svr": SupportVectors,
}
