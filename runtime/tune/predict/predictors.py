"""Predictors of a number from features: one protocol, two models, and custom ones.

Source: [ssg] §5.2.1, Eq. 7 and 8. "The user can easily plug-in different
prediction techniques": whatever has `fit` and `predict` will do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from slackwater.runtime.config import PREDICTOR
from slackwater.runtime.errors import SettingError
from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.gaussian import GaussianProcess
from slackwater.runtime.tune.predict.linear import LinearPredictor


class Predictor(Protocol):
    """Learns a number from examples, and says how sure it is."""

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Learn, forgetting earlier examples; what was found of the model's own shape may stay.

        Args:
            x: shape (n, features), finite, in the order of time; column 0 is the slack of a
                gate, or the forecast of another stage.
            y: shape (n,), finite: what the forecast leaves; may be below 0.
        """
        ...

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation, each (m,), for features of shape (m, features)."""
        ...


PredictorFactory = Callable[[int], Predictor]
"""seed -> a new predictor."""


def make_predictor(predictor: str | Predictor | PredictorFactory, *, seed: int = 0) -> Predictor:
    """Return a new predictor.

    Args:
        predictor: a name of `PREDICTORS`, an object to be copied, or what makes one from a seed.
        seed: of what it draws.

    Raises:
        SettingError: no predictor has that name, or what was given is no predictor.
    """
    if not isinstance(predictor, str):
        own: Predictor = PREDICTOR.make(predictor, seed)
        return own
    if predictor not in PREDICTORS:
        raise SettingError(f"predictor={predictor!r} is none of {', '.join(map(repr, PREDICTORS))}")
    return PREDICTORS[predictor](seed)


PREDICTORS: dict[str, PredictorFactory] = {
    "gp": GaussianProcess,
    "linear": LinearPredictor,
}
