"""Predictors of a number from features: one protocol, two models, and custom ones.

Source: [ssg] §5.2.1, Eq. 7 and 8. "The user can easily plug-in different prediction techniques":
any object with `fit` and `predict` works.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from slackwater.runtime.config import PREDICTOR
from slackwater.runtime.errors import SettingError
from slackwater.runtime.shown import shown
from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.gaussian import GaussianProcess
from slackwater.runtime.tune.predict.linear import LinearPredictor


class Predictor(Protocol):
    """Learns a number from examples, and predicts it with a deviation."""

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Learn these examples and forget earlier ones; hyperparameters may stay.

        Args:
            x: shape (n, features), finite, in the order of time; column 0 is the slack of a
                gate, or the forecast of another step.
            y: shape (n,), finite: the residual of the forecast; may be below 0.
        """
        ...

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation, each (m,), for x of shape (m, features)."""
        ...


PredictorFactory = Callable[[int], Predictor]
"""Function from a seed to a new predictor."""


def make_predictor(predictor: str | Predictor | PredictorFactory, *, seed: int = 0) -> Predictor:
    """Return a new predictor.

    Args:
        predictor: a name of `PREDICTORS`, an object to copy, or a function that makes one from a
            seed.
        seed: seed of its random draws.

    Raises:
        SettingError: no predictor has that name, or the object is not a predictor.
    """
    if not isinstance(predictor, str):
        own: Predictor = PREDICTOR.make(predictor, seed)
        return own
    if predictor not in PREDICTORS:
        raise SettingError(
            f"predictor={shown(predictor)} is none of {', '.join(map(repr, PREDICTORS))}"
        )
    return PREDICTORS[predictor](seed)


PREDICTORS: dict[str, PredictorFactory] = {
    "gp": GaussianProcess,
    "linear": LinearPredictor,
}
