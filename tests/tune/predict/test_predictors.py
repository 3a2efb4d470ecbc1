"""Two models and custom ones, with one protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slackwater as sw
from slackwater.runtime.config import Tuning
from slackwater.runtime.errors import SettingError
from slackwater.runtime.tune.predict.calibrated_predictor import CalibratedPredictor
from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.linear import LinearPredictor
from slackwater.runtime.tune.predict.predictors import PREDICTORS, make_predictor
from tests.support.flows import late_pair
from tests.support.predictors import bent, check_constant, check_near, check_repeats


@pytest.mark.parametrize("name", PREDICTORS)
def test_every_model_is_nearer_than_the_mean_and_sure_to_a_degree(name: str) -> None:
    check_near(PREDICTORS[name])


@pytest.mark.parametrize("name", PREDICTORS)
def test_the_same_seed_gives_the_same_predictions(name: str) -> None:
    check_repeats(PREDICTORS[name])


def test_a_gaussian_process_is_less_sure_the_farther_it_is_from_the_data() -> None:
    x, y = bent(100, seed=1)
    predictor = make_predictor("gp")
    predictor.fit(x, y)
    away = np.column_stack((np.full(5, 0.5), 0.5 + np.array([0.0, 1.0, 2.0, 4.0, 8.0])))
    _, deviation = predictor.predict(away)
    assert (np.diff(deviation) > 0).all()
    assert deviation[2] > 3 * deviation[0]


@pytest.mark.parametrize("name", PREDICTORS)
def test_what_never_changes_is_predicted_as_it_is(name: str) -> None:
    check_constant(PREDICTORS[name])


def test_a_name_that_is_none_says_which_there_are() -> None:
    with pytest.raises(SettingError, match="'gp', 'linear'"):
        make_predictor("forest")


class Mean:
    """Predicts the mean of what it saw."""

    def __init__(self, seed: int = 0) -> None:
        self.seed, self.mean = seed, 0.0

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        del x
        self.mean = float(y.mean())

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(len(x), self.mean), np.ones(len(x))


@pytest.mark.parametrize(
    ("predictor", "seed"), [(Mean, 3), (lambda seed: Mean(seed + 1), 4), (Mean(7), 7)]
)
def test_each_model_is_a_custom_one_that_shares_nothing(predictor: Any, seed: int) -> None:
    one, other = (make_predictor(Tuning(predictor=predictor).predictor, seed=3) for _ in range(2))
    assert isinstance(one, Mean)
    assert isinstance(other, Mean)
    one.fit(np.ones((2, 1)), np.full(2, 5.0))
    assert (one.mean, other.mean, one.seed) == (5.0, 0.0, seed)


@pytest.mark.parametrize(
    ("predictor", "says"),
    [
        (7, r"predictor=7 is an int without fit\(x, y\) and predict\(x\): a custom predictor"),
        (None, "is None without"),
        ("svr", "predictor='svr' must be 'gp' or 'linear'"),
    ],
)
def test_what_is_no_predictor_is_refused_with_the_rule(predictor: Any, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        Tuning(predictor=predictor)


def test_what_a_function_makes_must_be_a_predictor() -> None:
    with pytest.raises(SettingError, match=r"which cannot be a predictor: it lacks fit\(x, y\)"):
        make_predictor(lambda _: object())  # type: ignore[arg-type, return-value]


def test_the_tuner_predicts_alike_by_a_name_and_by_its_class() -> None:
    flow = late_pair("late", seconds=40, deadline="1s")
    reports = []
    for predictor in ("linear", LinearPredictor):
        with sw.Simulation(2) as nodes:
            tuning = sw.Tuning(predictor=predictor)
            reports.append(nodes.submit(flow, tuning=tuning).wait().tuning)
    one, other = reports
    assert one is not None
    assert other is not None
    assert one.status["fits"] == 1
    assert (one.gates, one.series, one.status) == (other.gates, other.series, other.status)


class Column:
    """A predictor that returns a column for each number."""

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        del x, y

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros((len(x), 1)), np.ones((len(x), 1))


def test_a_prediction_of_another_shape_is_refused() -> None:
    model = CalibratedPredictor(Column(), forecast=0)
    model.fit(np.ones((3, 2)), np.ones(3))
    with pytest.raises(ValueError, match=r"returned shapes \(3, 1\) and \(3, 1\); return mean and"):
        model.predict(np.ones((3, 2)))
