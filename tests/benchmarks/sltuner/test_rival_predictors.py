"""Rival predictors learn, so that the Gaussian process is compared with something."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.sltuner.rival_predictors import RIVALS, IsotonicPredictor
from slackwater.runtime.tune.predict.estimator import Estimator
from tests.support.gates import JOIN, PATHS, S, course
from tests.support.predictors import bent, check_constant, check_near, check_repeats


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_passes_the_checks_of_a_model(name: str) -> None:
    check_near(RIVALS[name])
    check_repeats(RIVALS[name])
    check_constant(RIVALS[name])


def test_isotonic_regression_sees_the_slack_alone() -> None:
    x, y = bent(100, seed=1)
    predictor = IsotonicPredictor()
    predictor.fit(x, y)
    other = np.column_stack((x[:, 0], 100.0 + x[:, 1]))
    assert np.array_equal(predictor.predict(x)[0], predictor.predict(other)[0])


@pytest.mark.parametrize("name", RIVALS)
def test_the_estimator_takes_every_rival(name: str) -> None:
    """With the slack its latency never falls."""
    estimator = Estimator(PATHS, predictor=RIVALS[name])
    for second, samples in enumerate(course(60, seed=2)):
        estimator.observe(second, samples)
    estimator.fit()
    latency_ns = estimator.predict(JOIN, np.arange(0, 9) * S).latency_ns
    assert (np.diff(latency_ns) >= 0).all()
