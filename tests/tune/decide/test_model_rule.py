"""What the models would set, and that they say nothing where they know nothing."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from slackwater.runtime.config import Tuning
from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune.decide.model_rule import FIRST_FIT_S, MODEL, ModelRule
from slackwater.runtime.tune.predict.estimator import Estimator
from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.linear import LinearPredictor
from tests.support.gates import JOIN, PATHS, S, course, second
from tests.support.graphs import paths

DEADLINE = 3 * S


def history(seconds: int = 150, *, rest_ms: float = 5.0) -> list[StageSample]:
    run = course(seconds, seed=5, rest_ms=rest_ms)
    return [sample for samples in run for sample in samples.values()]


def tuner(known: Sequence[StageSample] = (), **settings: float) -> ModelRule:
    tuning = replace(Tuning(predictor="linear"), **settings)  # type: ignore[arg-type]
    return ModelRule(PATHS, deadline_ns=DEADLINE, tuning=tuning, history=known)


def one(settings: Sequence[SetRelease]) -> SetRelease:
    (only,) = settings
    return only


def driven(own: ModelRule, seconds: int, *, rest_ms: float = 5.0) -> list[tuple[float, int]]:
    """Let the tuner rule a gate whose skew climbs and falls; return (latency, slack-ready)."""
    own.begin()
    slack_s = 2.9
    rng = np.random.default_rng(9)
    skew_s, held_s, seen = 0.0, 0.0, []
    for k in range(seconds):
        slope = 0.25 if k % 30 < 20 else -0.5
        skew_s = max(skew_s + slope + 0.03 * rng.standard_normal(), 0.0)
        samples = second(
            k, skew_s=skew_s, slack_s=slack_s, slope=slope, held_s=held_s, rest_ms=rest_ms
        )
        took_s = samples[JOIN].latency_ns / S + 2 * rest_ms / 1e3
        seen.append((took_s, samples[JOIN].slack_ready))
        held_s = min(skew_s, slack_s)
        slack_s = (one(own.decide(k, samples)).rule.slack_ns or 0) / S
    return seen


def test_without_a_model_nothing_is_said() -> None:
    own = tuner()
    assert not own.begin()
    run = course(FIRST_FIT_S + 5, seed=1)
    said = [[one.by for one in own.decide(k, samples)] for k, samples in enumerate(run)]
    assert said == [[]] * (FIRST_FIT_S - 1) + [[MODEL]] * 6
    assert own.status()["fits"] == 1


def test_with_a_history_the_model_speaks_from_the_first_second() -> None:
    own = tuner(history())
    own.begin()
    assert one(own.decide(0, second(0, skew_s=1.0, slack_s=2.0))).by == MODEL


def test_the_deadline_is_kept_and_hardly_more_order_lost_than_it_costs() -> None:
    seen = driven(tuner(history()), 240)
    over = [latency_s for latency_s, _ in seen if latency_s > DEADLINE / S]
    assert len(over) <= 3, over
    ready = sum(count for _, count in seen)
    ideal = sum(count for _, count in driven_by(DEADLINE / S - 0.02, 240))
    assert ideal < ready < 1.5 * ideal


def driven_by(slack_s: float, seconds: int) -> list[tuple[float, int]]:
    """The same with one slack throughout."""
    rng = np.random.default_rng(9)
    skew_s, held_s, seen = 0.0, 0.0, []
    for k in range(seconds):
        slope = 0.25 if k % 30 < 20 else -0.5
        skew_s = max(skew_s + slope + 0.03 * rng.standard_normal(), 0.0)
        join = second(k, skew_s=skew_s, slack_s=slack_s, slope=slope, held_s=held_s)[JOIN]
        seen.append((join.latency_ns / S, join.slack_ready))
        held_s = min(skew_s, slack_s)
    return seen


def test_what_the_rest_of_the_path_takes_is_taken_from_the_slack() -> None:
    slacks = []
    for rest_ms in (5.0, 600.0):
        own = tuner(history(rest_ms=rest_ms))
        own.begin()
        for k in range(8):
            near = second(k, skew_s=2.9 + 0.1 * k, slack_s=2.0, rest_ms=rest_ms)
            setting = one(own.decide(k, near))
        slacks.append((setting.rule.slack_ns or 0) / S)
    assert 2.0 < slacks[0] < 3.0
    assert slacks[1] < slacks[0] - 1.0  # a source and a sink on the path, 0.6 s each


def test_a_higher_probability_is_more_careful() -> None:
    def slack_of(probability: float) -> int:
        own = tuner(history(), probability=probability)
        own.begin()
        for k in range(8):
            setting = one(own.decide(k, second(k, skew_s=3.2 + 0.2 * k, slack_s=2.5)))
        return setting.rule.slack_ns or 0

    assert slack_of(0.999) < slack_of(0.5)


def test_behind_a_slack_stands_the_hold_that_the_others_leave() -> None:
    own = tuner(history())
    own.begin()
    setting = one(own.decide(0, second(0, skew_s=4.0, slack_s=2.0)))
    assert setting.rule.hold_ns is not None
    assert setting.rule.slack_ns is not None
    assert setting.rule.slack_ns <= setting.rule.hold_ns <= DEADLINE


def polled(k: int, step: Subject = JOIN) -> StageSample:
    """A second of a gate to which event time comes ten seconds at once."""
    newest_ns = (k // 10) * 10 * S
    plain = second(k, skew_s=4.0, slack_s=2.0)[JOIN]
    return replace(plain, subject=step, newest_ns=newest_ns, frontier_ns=newest_ns - 4 * S)


def test_where_event_time_jumps_a_gate_alone_has_a_hold_and_no_slack() -> None:
    own = tuner(history())
    own.begin()
    for k in range(40):
        setting = one(own.decide(k, {**second(k, skew_s=4.0, slack_s=2.0), JOIN: polled(k)}))
    assert setting.rule.slack_ns is None
    assert setting.rule.hold_ns is not None
    assert DEADLINE // 2 < setting.rule.hold_ns < DEADLINE


def test_where_event_time_jumps_gates_that_share_a_deadline_are_held_before_their_slacks() -> None:
    own_paths = paths({"in": (), "one": ("in",), "two": ("one",)}, ["one", "two"])
    own = ModelRule(own_paths, deadline_ns=DEADLINE, tuning=Tuning(predictor="linear"))
    own.begin()
    for k in range(FIRST_FIT_S + 10):
        now = {step: polled(k, step) for step in own_paths.tuned}
        source = Subject("in")
        settings = own.decide(k, {**now, source: StageSample(subject=source, second=k, rows=1)})
    holds = []
    for setting in settings:
        assert setting.by == MODEL
        assert setting.rule.slack_ns is not None
        assert setting.rule.hold_ns is not None
        assert setting.rule.slack_ns > setting.rule.hold_ns + 3 * S
        holds.append(setting.rule.hold_ns)
    assert sum(holds) < 1.1 * DEADLINE, "they share it"


class Failing(LinearPredictor):
    def fit(self, x: FloatArray, y: FloatArray) -> None:
        raise ValueError(f"{len(x)} rows and {len(y)} numbers are too many")


def test_a_model_that_cannot_be_fitted_says_nothing_and_is_counted() -> None:
    own = tuner()
    own._estimator = Estimator(PATHS, predictor=Failing)
    own.begin()
    for k, samples in enumerate(course(FIRST_FIT_S + 10, seed=1)):
        assert not own.decide(k, samples)
    failures = own.status()["failures"]
    assert isinstance(failures, dict)
    assert "too many" in failures["join"]


def test_after_a_second_without_the_gates_samples_nothing_is_said() -> None:
    own = tuner(history())
    own.begin()
    samples = second(0, skew_s=1.0, slack_s=2.0)
    del samples[JOIN]
    assert not own.decide(0, samples)
    assert one(own.decide(1, second(1, skew_s=1.0, slack_s=2.0))).by == MODEL


def test_the_same_samples_give_the_same_slacks_also_in_another_process() -> None:
    own = tuner(history())
    own.begin()
    run = course(40, seed=3)
    first = [own.decide(k, samples) for k, samples in enumerate(run[:20])]
    other = pickle.loads(pickle.dumps(own))  # noqa: S301 our own
    later = [own.decide(20 + k, samples) for k, samples in enumerate(run[20:])]
    assert later == [other.decide(20 + k, samples) for k, samples in enumerate(run[20:])]
    again = tuner(history())
    again.begin()
    assert first == [again.decide(k, samples) for k, samples in enumerate(run[:20])]
