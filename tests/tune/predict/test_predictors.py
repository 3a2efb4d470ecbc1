"""Four models behind one protocol."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.runtime.errors import SettingError
from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.predictors import PREDICTORS, make_predictor


def bent(rows: int, *, seed: int) -> tuple[FloatArray, FloatArray]:
    """x of two columns, and what falls with the first and bends with the second."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 1.0, (rows, 2))
    return x, -2.0 * x[:, 0] + np.sin(6.0 * x[:, 1]) + 0.02 * rng.standard_normal(rows)


@pytest.mark.parametrize("name", PREDICTORS)
def test_every_model_is_nearer_than_the_mean_and_sure_to_a_degree(name: str) -> None:
    (x, y), (at, to) = bent(120, seed=1), bent(60, seed=2)
    predictor = make_predictor(name)
    predictor.fit(x, y)
    mean, deviation = predictor.predict(at)
    assert mean.shape == deviation.shape == (60,)
    assert np.mean((mean - to) ** 2) < 0.7 * to.var()
    assert (deviation > 0).all()
    assert np.mean(np.abs(mean - to) < 3 * deviation) > 0.9


@pytest.mark.parametrize("name", PREDICTORS)
def test_the_same_seed_gives_the_same_predictions(name: str) -> None:
    x, y = bent(80, seed=1)
    found = []
    for _ in range(2):
        predictor = make_predictor(name, seed=5)
        predictor.fit(x, y)
        found.append(predictor.predict(x))
    assert np.array_equal(found[0], found[1])


def test_a_gaussian_process_is_less_sure_the_farther_it_is_from_the_data() -> None:
    x, y = bent(100, seed=1)
    predictor = make_predictor("gp")
    predictor.fit(x, y)
    away = np.column_stack((np.full(5, 0.5), 0.5 + np.array([0.0, 1.0, 2.0, 4.0, 8.0])))
    _, deviation = predictor.predict(away)
    assert (np.diff(deviation) > 0).all()
    assert deviation[2] > 3 * deviation[0]


def test_isotonic_regression_sees_the_slack_alone() -> None:
    x, y = bent(100, seed=1)
    predictor = make_predictor("isotonic")
    predictor.fit(x, y)
    other = np.column_stack((x[:, 0], 100.0 + x[:, 1]))
    assert np.array_equal(predictor.predict(x)[0], predictor.predict(other)[0])


@pytest.mark.parametrize("name", PREDICTORS)
def test_what_never_changes_is_predicted_as_it_is(name: str) -> None:
    predictor = make_predictor(name)
    predictor.fit(np.ones((40, 3)), np.full(40, 7.0))
    mean, deviation = predictor.predict(np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 1.0]]))
    assert mean == pytest.approx([7.0, 7.0], abs=1e-3)
    assert np.isfinite(deviation).all()


def test_a_name_that_is_none_says_which_there_are() -> None:
    with pytest.raises(SettingError, match="'gp', 'linear', 'isotonic', 'svr'"):
        make_predictor("forest")
