"""Four ways to predict a number from features, behind one protocol.

Source: [ssg] §5.2.1, Eq. 7 and 8, and the rivals of Table 1. "The user can easily plug-in different
prediction techniques": whatever has `fit` and `predict` will do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from runtime.errors import SettingError
from runtime.tune.forecast import FloatArray

# scikit-learn takes a second to import: each class does it when it first fits.


class Predictor(Protocol):
    """Learns a number from examples, and says how sure it is."""

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Learn, forgetting earlier examples; what was found of the model's own shape may stay.

        Args:
            x: shape (n, features), finite; column 0 is the slack.
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


class Scale:
    """Shifts and stretches each column to mean 0 and deviation 1; a constant one becomes 0."""

    def __init__(self, values: FloatArray) -> None:
        self._mean = values.mean(axis=0)
        deviation = values.std(axis=0)
        self.deviation = np.where(deviation > 1e-9 * (1.0 + np.abs(self._mean)), deviation, 1.0)

    def to(self, values: FloatArray) -> FloatArray:
        """Return values on the scale."""
        return np.asarray((values - self._mean) / self.deviation, dtype=np.float64)

    def back(self, values: FloatArray) -> FloatArray:
        """Return values of the scale as they were."""
        return np.asarray(values * self.deviation + self._mean, dtype=np.float64)


class LinearPredictor:
    """Least squares, a touch of ridge; deviation from the residuals and the distance to the data.

    Args:
        seed: not used.
    """

    def __init__(self, seed: int = 0) -> None:
        del seed

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Solve the normal equations."""
        self._scale = Scale(x)
        design = self._design(x)
        normal = design.T @ design
        normal[np.diag_indices_from(normal)] += 1e-6 * len(y)
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


class GaussianProcess:
    """A Gaussian process on what a linear model leaves: far from all data it is the linear one.

    Matérn kernel with a length for each feature, and noise. The lengths are found by likelihood
    on `SHAPE_ROWS` examples at the first fit, when there are half as many examples again, and at
    every `SHAPE_EVERY`th fit.

    Source: [ssg] Eq. 7 and 8, after C. E. Rasmussen and C. K. I. Williams (2005), §2.7 for the
    linear part. Differs: the paper names no kernel and trains once.
    """

    SHAPE_ROWS, SHAPE_EVERY = 250, 15
    LEAST_NOISE = 1e-3
    """Of the variance that the linear model leaves: nothing is foreseen without any error."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._fits = self._shaped_rows = 0
        self._kernel: Any = None

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Condition on all examples; find the lengths if it is time."""
        from sklearn.gaussian_process import GaussianProcessRegressor  # noqa: PLC0415

        self._x_scale = Scale(x)
        self._linear = LinearPredictor()
        self._linear.fit(x, y)
        left = y - self._linear.predict(x)[0]
        self._y_scale = Scale(left)
        at, left = self._x_scale.to(x), self._y_scale.to(left)
        if self._fits % self.SHAPE_EVERY == 0 or len(y) > 1.5 * self._shaped_rows:
            self._kernel = self._shape(at, left)
            self._shaped_rows = len(y)
        self._fits += 1
        self._process = GaussianProcessRegressor(self._kernel, optimizer=None).fit(at, left)

    def _shape(self, at: FloatArray, left: FloatArray) -> Any:
        from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
        from sklearn.gaussian_process import GaussianProcessRegressor  # noqa: PLC0415
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel  # noqa: PLC0415

        lengths = Matern(np.full(at.shape[1], 2.0), (0.05, 200.0), nu=1.5)
        noise = WhiteKernel(0.1, (self.LEAST_NOISE, 2.0))
        some = self._rng.permutation(len(left))[: self.SHAPE_ROWS]
        process = GaussianProcessRegressor(
            ConstantKernel(1.0, (1e-2, 1e2)) * lengths + noise, optimizer=_few_steps
        )
        with warnings.catch_warnings():  # a length at its bound is a feature that does not matter
            warnings.simplefilter("ignore", ConvergenceWarning)
            return process.fit(at[some], left[some]).kernel_

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation, noise included."""
        mean, deviation = self._process.predict(self._x_scale.to(x), return_std=True)
        return self._linear.predict(x)[0] + self._y_scale.back(mean), (
            deviation * self._y_scale.deviation
        )


def _few_steps(
    objective: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray, bounds: Any
) -> tuple[FloatArray, float]:
    """Minimise without going to the end: the last digits of a length do not matter."""
    from scipy.optimize import minimize  # noqa: PLC0415

    found = minimize(
        objective, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": 25}
    )
    return found.x, found.fun


class IsotonicPredictor:
    """A monotone function of the slack alone, rising or falling as the data does."""

    def __init__(self, seed: int = 0) -> None:
        del seed

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Pool adjacent violators."""
        from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415

        self._model = IsotonicRegression(increasing="auto", out_of_bounds="clip")
        self._model.fit(x[:, 0], y)
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
