"""The lengths of a Gaussian process, and how likely they make its examples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from slackwater.runtime.tune.predict.likelihood import _unlikely, likeliest

RNG = np.random.default_rng(3)
AT = RNG.standard_normal((40, 3))
Y = np.sin(2.0 * AT[:, 0]) + 0.1 * RNG.standard_normal(40)
PARAMETERS = np.array([1.3, 0.7, 2.0, 5.0, 0.2])


def test_the_likelihood_is_that_of_scikit_learn() -> None:
    kernel = ConstantKernel(1.3) * Matern([0.7, 2.0, 5.0], nu=1.5) + WhiteKernel(0.2)
    theirs = GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-8).fit(AT, Y)
    ours = -_unlikely(PARAMETERS, AT, Y, None)[0] - 20 * np.log(2 * np.pi)
    assert ours == pytest.approx(theirs.log_marginal_likelihood_value_)


@pytest.mark.parametrize("is_local", [False, True])
def test_the_gradient_is_that_of_the_likelihood(is_local: bool) -> None:
    noise = np.linspace(0.1, 0.5, 40) if is_local else None
    logs = np.log(PARAMETERS[:2] if is_local else PARAMETERS)
    wrong = check_grad(
        lambda x: _unlikely(np.exp(x), AT, Y, noise)[0],
        lambda x: _unlikely(np.exp(x), AT, Y, noise)[1],
        logs,
    )
    assert wrong < 1e-4


def test_a_feature_that_does_not_matter_gets_a_long_length() -> None:
    found = likeliest(AT, Y, noise=None)
    assert found.lengths[0] < 3.0
    assert found.lengths[1:].min() > 20.0
    assert found.noise < 0.1
