"""What a stage that is not tuned takes: it has no slack to ask about, only a course to follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.tune.predict.calibrated_predictor import CalibratedPredictor
from slackwater.runtime.tune.predict.forecast import FloatArray, mean_rise
from slackwater.runtime.tune.predict.predictors import Predictor

RECENT = 5
"""Seconds with work in them that the course is read from."""
AHEAD = 2
"""A slack that is set now is felt in the next second, and what it has let wait in the one after."""
LEAST = 20


class UntunedStageModel:
    """The largest latency of the next two seconds, from the last ones.

    Args:
        predictor: learns what it differs by from the forecast: that it rises as it did.
    """

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = CalibratedPredictor(predictor, forecast=_FORECAST)
        self._is_fitted = False

    def fit(self, history: Sequence[StageSample]) -> None:
        """Learn from samples by seconds; those without work say nothing. Several runs will do.

        Raises:
            ValueError, ArithmeticError: it does not fit.
        """
        worked = [sample for sample in history if sample.rows]
        x, y = [], []
        for last in range(RECENT - 1, len(worked) - AHEAD):
            run = worked[last - RECENT + 1 : last + AHEAD + 1]
            if _is_one_run(run):
                x.append(_course(run[:RECENT]))
                y.append(max(_took_s(one) for one in run[RECENT:]))
        self._is_fitted = False  # nor is it after a fit that fails
        if len(y) >= LEAST:
            self._predictor.fit(np.array(x), np.array(y))
            self._is_fitted = True

    def predict(self, history: Iterable[StageSample]) -> tuple[float, float]:
        """Return mean and deviation (ns) of the largest latency in the next two seconds.

        Args:
            history: the last seconds of this run, not of others.

        0 without any work yet; without a model the forecast, and how much the latency varied.
        """
        worked = [one for one in history if one.rows][-RECENT:]
        if not worked:
            return 0.0, 0.0
        if not self._is_fitted or len(worked) < RECENT or not _is_one_run(worked):
            took = [_took_s(one) for one in worked]
            return _forecast_s(took) * NS_PER_SECOND, float(np.std(took)) * NS_PER_SECOND
        mean, deviation = self._predictor.predict(np.array([_course(worked)]))
        return max(float(mean[0]), 0.0) * NS_PER_SECOND, float(deviation[0]) * NS_PER_SECOND


def _is_one_run(samples: Sequence[StageSample]) -> bool:
    """Whether seconds go on from each other, without a long gap: another run begins anew."""
    seconds = [one.second for one in samples]
    is_rising = all(before < after for before, after in pairwise(seconds))
    return is_rising and seconds[-1] - seconds[0] <= 2 * (len(seconds) - 1)


def _took_s(sample: StageSample) -> float:
    return sample.took_ns / NS_PER_SECOND


def _forecast_s(took_s: Sequence[float]) -> float:
    """Return the largest of the next two seconds if it rises as over the last two, or falls."""
    return took_s[-1] + AHEAD * mean_rise(took_s)


_FORECAST = 0  # the column of `_course` with the forecast


def _course(run: Sequence[StageSample]) -> FloatArray:
    """Return what is known at the end of the last of `RECENT` seconds: latency, and what waits."""
    took = [_took_s(one) for one in run]
    now = run[-1]
    # The minute as a circle, as [ssg] Eq. 6 has its second: load that comes round is foreseen.
    turn = 2 * np.pi * ((now.last_event_ns / NS_PER_SECOND) % 60) / 60
    return np.array(
        [
            _forecast_s(took),
            took[-1],
            took[-1] - took[-2],
            (took[-1] - took[0]) / (RECENT - 1),
            now.held_ns / NS_PER_SECOND,
            float(now.held),
            float(now.held - run[-2].held),
            float(now.rows),
            np.sin(turn),
            np.cos(turn),
        ]
    )
