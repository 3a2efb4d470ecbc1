"""The Estimator: samples in, predictions of the next second out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune.predict.estimator import Estimator, NoPredictionError, Prediction
from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.linear import LinearPredictor
from slackwater.runtime.tune.predict.predictors import PredictorFactory
from tests.support.gates import JOIN, OUT, PATHS, S, course, second

SLACKS = np.arange(0, 9) * S


def taught(
    run: Iterable[Mapping[Subject, StageSample]],
    predictor: str | PredictorFactory = "linear",
    **options: int,
) -> Estimator:
    estimator = Estimator(PATHS, predictor=predictor, **options)
    for samples in run:
        estimator.observe(next(iter(samples.values())).second, samples)
    estimator.fit()
    return estimator


def same(one: Prediction, other: Prediction) -> bool:
    return np.array_equal(one.latency_ns, other.latency_ns) and np.array_equal(
        one.slack_ready, other.slack_ready
    )


@pytest.mark.parametrize("predictor", ["gp", "linear"])
def test_the_next_second_waits_as_long_as_skew_or_slack(predictor: str) -> None:
    estimator = taught(course(110, seed=1), predictor)
    for k, skew_s in enumerate((2.6, 2.8, 3.0)):
        estimator.observe(110 + k, second(110 + k, skew_s=skew_s, slack_s=8.0))
    got = estimator.predict(JOIN, np.array([1 * S, 2 * S, 5 * S]))
    # Held for 3 s is held for 3 s: a lower slack can only let it go.
    assert got.latency_ns / S == pytest.approx([3.0, 3.0, 3.2], abs=0.3)
    assert got.slack_ready[0] > got.slack_ready[1] > 100 > got.slack_ready[2]


@pytest.mark.parametrize("predictor", ["gp", "linear"])
def test_with_the_slack_latency_never_falls_and_slack_ready_never_grows(predictor: str) -> None:
    estimator = taught(course(60, seed=2), predictor)
    got = estimator.predict(JOIN, SLACKS)
    assert (np.diff(got.latency_ns) >= 0).all()
    assert (np.diff(got.slack_ready) <= 0).all()
    assert (got.latency_sd_ns > 0).all()
    assert (got.slack_ready >= 0).all()


def test_candidates_may_come_in_any_order() -> None:
    estimator = taught(course(100, seed=2))
    order = np.random.default_rng(0).permutation(len(SLACKS))
    assert estimator.predict(JOIN, SLACKS[order]).latency_ns == pytest.approx(
        estimator.predict(JOIN, SLACKS).latency_ns[order]
    )


def test_the_same_samples_and_seed_give_the_same_predictions() -> None:
    one, other = (taught(course(60, seed=3), "gp", seed=4) for _ in range(2))
    assert same(one.predict(JOIN, SLACKS), other.predict(JOIN, SLACKS))


def test_a_stage_is_not_ready_before_it_has_seconds_to_learn_from() -> None:
    estimator = taught(course(10, seed=1))
    assert not estimator.is_ready(JOIN)
    assert "9 seconds to learn from" in estimator.failures[JOIN]
    assert estimator.failed_fits == {JOIN: 1}
    assert taught(course(60, seed=1)).is_ready(JOIN)


def test_runs_one_after_the_other_are_learned_from_but_not_across() -> None:
    first, then = course(60, seed=1), course(60, seed=2)
    together = taught([*first, *then])
    # A gap in one run keeps the two seconds around it apart in the same way.
    later = [second(200 + k, skew_s=1.0, slack_s=2.0) for k in range(0, 10, 2)]
    assert together.is_ready(JOIN)
    assert taught([*first, *later]).is_ready(JOIN)
    assert not taught(later).is_ready(JOIN)


def test_missing_stages_and_strangers_are_no_matter() -> None:
    run = course(80, seed=1)
    without = [{n: s for n, s in samples.items() if n != OUT} for samples in run]
    stranger = StageSample(subject=Subject("stranger"), second=3)
    estimator = taught([{**samples, "stranger": stranger} for samples in without])
    assert same(estimator.predict(JOIN, SLACKS), taught(run).predict(JOIN, SLACKS))
    assert estimator.rest(OUT) == (0.0, 0.0)


def test_only_the_window_is_remembered() -> None:
    old, new = course(100, seed=1), course(80, seed=2, first=100)
    bounded = taught([*old, *new], window_s=79)
    assert same(bounded.predict(JOIN, SLACKS), taught(new).predict(JOIN, SLACKS))


def test_history_outlives_a_job_as_json_and_a_new_job_is_ready_with_its_first_second() -> None:
    run = course(80, seed=1)
    before = taught(run)
    lines = [json.dumps(sample.to_json()) for samples in run for sample in samples.values()]
    after = Estimator(PATHS, predictor="linear")
    after.recall(StageSample.from_json(json.loads(line)) for line in lines)
    after.fit()
    assert not after.is_ready(JOIN)
    first = second(0, skew_s=0.5, slack_s=1.0)
    for estimator in (before, after):
        estimator.observe(0, first)
    assert after.is_ready(JOIN)
    assert same(after.predict(JOIN, SLACKS), before.predict(JOIN, SLACKS))


class Failing(LinearPredictor):
    def fit(self, x: FloatArray, y: FloatArray) -> None:
        raise ValueError(f"{max(len(x), len(y))} rows are too many")


class Nonsense(LinearPredictor):
    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(len(x), np.nan), np.ones(len(x))


def test_a_model_that_fails_to_fit_is_counted_and_says_why() -> None:
    estimator = taught(course(60, seed=1), Failing)
    assert not estimator.is_ready(JOIN)
    assert estimator.failures[JOIN] == "the model of latency does not fit: 59 rows are too many"
    assert set(estimator.failures) == {Subject("buses"), Subject("loops"), JOIN, OUT}
    estimator.fit()
    assert estimator.failed_fits[JOIN] == 2


def test_a_stage_whose_model_does_not_fit_is_taken_to_take_as_long_as_it_did_last() -> None:
    run = course(60, seed=1)
    assert taught(run, Failing).rest(OUT)[0] == run[-1][OUT].took_ns > 0


def test_a_model_that_predicts_no_number_is_not_used() -> None:
    estimator = taught(course(60, seed=1), Nonsense)
    assert not estimator.is_ready(JOIN)
    assert "not a number" in estimator.failures[JOIN]


class Broken(LinearPredictor):
    def fit(self, x: FloatArray, y: FloatArray) -> None:
        del x, y
        raise RuntimeError


def test_a_predictor_that_raises_anything_is_a_model_that_does_not_fit() -> None:
    estimator = taught(course(60, seed=1), Broken)
    assert not estimator.is_ready(JOIN)
    assert estimator.failures[JOIN] == "the model of latency does not fit: RuntimeError"


class Brief(LinearPredictor):
    """Predicts once in a fit, then raises."""

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        super().fit(x, y)
        self.asked = 0

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        self.asked += 1
        if self.asked > 1:
            raise OSError("the model server is gone")
        return super().predict(x)


def test_a_model_that_stops_predicting_is_not_ready_until_the_next_fit() -> None:
    estimator = taught(course(60, seed=1), Brief)
    assert estimator.is_ready(JOIN)
    with pytest.raises(NoPredictionError):
        estimator.predict(JOIN, SLACKS)
    assert not estimator.is_ready(JOIN)
    assert estimator.failures[JOIN] == "its model does not predict: the model server is gone"
    estimator.fit()
    assert estimator.is_ready(JOIN)
    estimator.observe(60, second(60, skew_s=1.0, slack_s=2.0))  # each second is judged
    assert not estimator.is_ready(JOIN)
    assert estimator.failed_fits[JOIN] == 2


@pytest.mark.parametrize("predictor", ["gp", "linear"])
def test_what_was_never_seen_is_left_to_the_forecast_and_less_sure(predictor: str) -> None:
    """Half a minute of calm teaches nothing of a skew that grows to 3 s."""
    rng = np.random.default_rng(0)
    skews_s = np.concatenate((0.02 + 0.01 * rng.random(40), 0.35 * np.arange(1, 9)))
    estimator = Estimator(PATHS, predictor=predictor)
    for k, skew_s in enumerate(skews_s):
        slope = 0.0 if k < 40 else 0.35
        estimator.observe(k, second(k, skew_s=float(skew_s), slack_s=6.0, slope=slope))
        if k == 39:
            estimator.fit()
    got = estimator.predict(JOIN, np.array([6 * S]), settled=True)
    assert got.latency_ns[0] / S == pytest.approx(2.8 + 2 * 0.35, abs=0.4)
    assert got.latency_sd_ns[0] / S > 0.02


def test_event_time_that_jumps_is_known_to_for_some_minutes() -> None:
    """A feed that is polled each 12 s, and then not for a minute."""
    estimator = Estimator(PATHS, predictor="linear")
    calm = [second(k, skew_s=1.0, slack_s=2.0) for k in range(10)]
    for k, samples in enumerate(calm):
        estimator.observe(k, samples)
    assert estimator.spread_s(JOIN) == 0.0
    jumped = [replace(one[JOIN], newest_ns=one[JOIN].newest_ns + 9 * S) for one in calm]
    for k in range(10, 400):
        estimator.observe(k, {JOIN: replace(jumped[-1], second=k)})
        assert estimator.spread_s(JOIN) == (pytest.approx(10.0) if k < 310 else 0.0)
    recalled = Estimator(PATHS, predictor="linear")
    recalled.recall([calm[8][JOIN], jumped[9]])
    recalled.observe(0, {JOIN: replace(calm[0][JOIN], second=0)})
    assert recalled.spread_s(JOIN) == pytest.approx(1.0)


def test_a_jump_that_is_level_again_before_its_second_ends_is_not_taken_for_none() -> None:
    estimator = Estimator(PATHS, predictor="linear")
    for k in range(20):
        level = second(k, skew_s=0.0, slack_s=2.0)[JOIN]
        polled_ns = (k // 10) * 10 * S
        poll = replace(level, newest_ns=polled_ns, frontier_ns=polled_ns)
        estimator.observe(k, {JOIN: replace(poll, peak_ns=10 * S if k % 10 == 0 else 0)})
    assert estimator.spread_s(JOIN) == pytest.approx(10.0)


class Cocksure(LinearPredictor):
    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return super().predict(x)[0], np.full(len(x), 1e-3)


def test_a_model_that_was_too_sure_of_itself_is_believed_less() -> None:
    estimator = taught(course(60, seed=1), Cocksure)
    assert estimator.predict(JOIN, SLACKS).latency_sd_ns == pytest.approx(1e-3 * S)
    for samples in course(60, seed=2, first=60):
        estimator.observe(samples[JOIN].second, samples)
    estimator.fit()
    assert (estimator.predict(JOIN, SLACKS).latency_sd_ns > 2e-3 * S).all()


def test_the_rest_follows_what_it_took_of_late() -> None:
    estimator = taught([*course(100, seed=1), *course(40, seed=2, first=100, rest_ms=50.0)])
    mean_ns, deviation_ns = estimator.rest(OUT)
    assert mean_ns == pytest.approx(50e6, rel=0.2)
    assert 0 < deviation_ns < 50e6


def test_the_rest_is_not_predicted_from_other_runs_nor_learned_across_them() -> None:
    slow = [one for samples in course(60, seed=1, rest_ms=5_000.0) for one in samples.values()]
    quick = [one for samples in course(60, seed=2, rest_ms=1.0) for one in samples.values()]
    estimator = Estimator(PATHS, predictor="linear")
    estimator.recall([*slow, *quick, *slow])
    estimator.fit()
    assert estimator.rest(OUT) == (0.0, 0.0)  # nothing was seen in this run
    estimator.observe(0, second(0, skew_s=1.0, slack_s=2.0, rest_ms=10.0))
    assert estimator.rest(OUT) == (pytest.approx(10.1e6), 0.0)
    for k in range(1, 8):
        estimator.observe(k, second(k, skew_s=1.0, slack_s=2.0, rest_ms=1.0))
    mean_ns, deviation_ns = estimator.rest(OUT)
    assert mean_ns + deviation_ns < 100e6, "a step from one run to the next was learned"
