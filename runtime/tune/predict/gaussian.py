"""Gaussian process with local noise, its shape chosen by blocks of time left out.

Two shapes are tried. The first has a length for each feature: it finds which features matter. The
second has one length. Both have the noise of the nearest examples: counts of slack-ready rows are
exactly 0 most of the time, and hard to predict in the second in which the skew passes the slack; an
idle sink is easy to predict, and one with a backlog is not. The first shape is chosen if it
predicts unseen blocks of time clearly better.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.likelihood import likeliest
from slackwater.runtime.tune.predict.linear import LinearPredictor, Scale


class GaussianProcess:
    """Gaussian process on the residual of a linear model; far from data it is linear.

    Matérn kernels. The lengths are found by likelihood on `SHAPE_ROWS` examples at the first fit,
    when the number of examples has grown by half, and at every `SHAPE_EVERY`th fit; the shape is
    then chosen by the error on blocks of examples left out in turn, so examples come by time.

    Source: [ssg] Eq. 7 and 8, after C. E. Rasmussen and C. K. I. Williams (2005), §2.7 for the
    linear part, §5.4.2 for leaving examples out. Differs: the paper names no kernel, has one
    noise, and trains once.

    Args:
        seed: seed of the draw of examples that give the lengths.
    """

    SHAPE_ROWS, SHAPE_EVERY = 300, 15
    CLEARLY = 0.95
    """Error ratio below which a length for each feature pays: many lengths may fit chance."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._fits = self._shaped_rows = 0
        self._process: _Process = _Process(is_local=False)

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Condition on all examples; find lengths and shape when due."""
        self._x_scale = Scale(x)
        self._linear = LinearPredictor()
        self._linear.fit(x, y)
        left = y - self._linear.predict(x)[0]
        self._y_scale = Scale(left)
        at, left = self._x_scale.to(x), self._y_scale.to(left)
        if self._fits % self.SHAPE_EVERY == 0 or len(y) > 1.5 * self._shaped_rows:
            some = self._rng.permutation(len(left))[: self.SHAPE_ROWS]
            rich, plain = _Process(is_local=False), _Process(is_local=True)
            for process in (rich, plain):
                process.shape(at, left, some)
                process.fit(at, left)
            is_better = rich.error_on_blocks() < self.CLEARLY * plain.error_on_blocks()
            self._process = rich if is_better else plain
            self._shaped_rows = len(y)
        else:
            self._process.fit(at, left)
        self._fits += 1

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation, noise included."""
        mean, deviation = self._process.predict(self._x_scale.to(x))
        linear = self._linear.predict(x)[0]
        return linear + self._y_scale.back(mean), deviation * self._y_scale.deviation


class _Process:
    """Gaussian process of one shape.

    Noise is that of the nearest examples. With one length it is known before the fit: the residual
    of the linear model. With a length for each feature the likelihood finds one noise for all,
    which the fit uses; the error around a place is then the error at the nearest examples by
    these lengths, each left out.

    Args:
        is_local: whether all features share a length.
    """

    LEAST_NOISE, MOST_NOISE = 1e-3, 50.0
    """Bounds of noise, as shares of the residual variance: no prediction is exact, and one example
    with a large error does not make all around it worthless."""
    NEIGHBOURS, BLOCKS = 50, (2, 3, 5)

    def __init__(self, *, is_local: bool) -> None:
        self._is_local = is_local
        self._kernel: Any = None

    def shape(self, at: FloatArray, left: FloatArray, some: Int64Array) -> None:
        """Find the lengths by the likelihood of sampled examples."""
        from sklearn.gaussian_process import kernels  # noqa: PLC0415 (slow to import)

        self._learn(at, left)
        noise = self._noise(at[some]) if self._is_local else None
        kernel = likeliest(at[some], left[some], noise=noise)
        self._kernel = kernel.scale * kernels.Matern(kernel.lengths, nu=1.5)
        self._lengths = np.asarray(kernel.lengths)
        if not self._is_local:
            self._kernel += kernels.WhiteKernel(kernel.noise)

    def fit(self, at: FloatArray, left: FloatArray) -> None:
        """Condition on examples, with the lengths found before."""
        from sklearn.gaussian_process import GaussianProcessRegressor  # noqa: PLC0415

        self._learn(at, left)
        noise = self._noise(at) if self._is_local else 1e-8
        self._model = GaussianProcessRegressor(self._kernel, alpha=noise, optimizer=None)
        self._model.fit(at, left)
        half = np.linalg.inv(self._model.L_)
        self._inverse = half.T @ half
        if not self._is_local:
            # errors with each example left out
            off = np.ravel(self._model.alpha_) / np.diag(self._inverse)
            self._learn(at / self._lengths, off)

    def predict(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation, noise included."""
        mean, deviation = self._model.predict(at, return_std=True)
        if self._is_local:
            return mean, np.sqrt(deviation**2 + self._noise(at))
        variance = np.maximum(deviation**2 - self._kernel.k2.noise_level, 0.0)
        return mean, np.sqrt(variance + self._noise(at / self._lengths))

    def error_on_blocks(self) -> float:
        """Return the root mean square error on blocks of examples, each left out in turn.

        The blocks are long, halves, thirds and fifths: learning from neighbouring seconds must not
        count. No fit is needed: the error on block b is (K⁻¹)_bb⁻¹ (K⁻¹ y)_b.
        """
        weights = np.ravel(self._model.alpha_)
        errors = [
            np.linalg.solve(self._inverse[np.ix_(block, block)], weights[block])
            for count in self.BLOCKS
            for block in np.array_split(np.arange(len(weights)), count)
        ]
        return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))

    def _learn(self, at: FloatArray, left: FloatArray) -> None:
        self._at, self._squares = at, np.minimum(left**2, self.MOST_NOISE)

    def _noise(self, at: FloatArray) -> FloatArray:
        """Return the squared errors of examples around places, shape (m,)."""
        apart = (at**2).sum(axis=1)[:, None] + (self._at**2).sum(axis=1) - 2.0 * at @ self._at.T
        count = min(self.NEIGHBOURS, len(self._at) - 1)
        nearest = np.argpartition(apart, count, axis=1)[:, :count]
        around = self._squares[nearest].mean(axis=1)
        return np.asarray(np.maximum(around, self.LEAST_NOISE), dtype=np.float64)
