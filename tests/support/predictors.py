"""Examples that a model can learn from, and checks that every model passes."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.predictors import PredictorFactory


def bent(rows: int, *, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return x of two columns, and y that falls with the first and bends with the second."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 1.0, (rows, 2))
    return x, -2.0 * x[:, 0] + np.sin(6.0 * x[:, 1]) + 0.02 * rng.standard_normal(rows)


def check_near(make: PredictorFactory) -> None:
    """Check that a model is nearer than the mean, and sure to a degree."""
    (x, y), (at, to) = bent(120, seed=1), bent(60, seed=2)
    predictor = make(0)
    predictor.fit(x, y)
    mean, deviation = predictor.predict(at)
    assert mean.shape == deviation.shape == (60,)
    assert np.mean((mean - to) ** 2) < 0.7 * to.var()
    assert (deviation > 0).all()
    assert np.mean(np.abs(mean - to) < 3 * deviation) > 0.9


def check_repeats(make: PredictorFactory) -> None:
    """Check that a seed gives the same predictions."""
    x, y = bent(80, seed=1)
    means = []
    for _ in range(2):
        predictor = make(5)
        predictor.fit(x, y)
        means.append(predictor.predict(x))
    assert np.array_equal(means[0], means[1])


def check_constant(make: PredictorFactory) -> None:
    """Check that a constant is predicted as it is."""
    predictor = make(0)
    predictor.fit(np.ones((40, 3)), np.full(40, 7.0))
    mean, deviation = predictor.predict(np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 1.0]]))
    assert mean == pytest.approx([7.0, 7.0], abs=1e-3)
    assert np.isfinite(deviation).all()
