"""Latency of a step that is not tuned, predicted from its course over time."""

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
"""Seconds with work that the course is read from."""
AHEAD = 2
"""Seconds ahead: a slack set now has its effect in the next second and the one after."""
LEAST = 20


class UntunedStepModel:
    """Predicts the largest latency of the next two seconds, from the last ones.

    Args:
        predictor: learns the residual of the forecast, which continues the last rise.
    """

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = CalibratedPredictor(predictor, forecast=_FORECAST)
        self._is_fitted = False

    def fit(self, history: Sequence[StageSample]) -> None:
        """Learn from samples by seconds, of several runs too; seconds without work are skipped.

        Raises:
            ValueError, ArithmeticError: the predictor does not fit.
        """
        worked = [sample for sample in history if sample.rows]
        x, y = [], []
        for last in range(RECENT - 1, len(worked) - AHEAD):
            run = worked[last - RECENT + 1 : last + AHEAD + 1]
            if _is_single_run(run):
                x.append(_course(run[:RECENT]))
                y.append(max(_took_s(sample) for sample in run[RECENT:]))
        self._is_fitted = False  # stays so if the fit fails
        if len(y) >= LEAST:
            self._predictor.fit(np.array(x), np.array(y))
            self._is_fitted = True

    def predict(self, history: Iterable[StageSample]) -> tuple[float, float]:
        """Return mean and deviation (ns) of the largest latency in the next two seconds.

        Args:
            history: the last seconds of this run, not of other runs.

        0 before any work; without a model the forecast, and the deviation of the latency.
        """
        worked = [sample for sample in history if sample.rows][-RECENT:]
        if not worked:
            return 0.0, 0.0
        if not self._is_fitted or len(worked) < RECENT or not _is_single_run(worked):
            took = [_took_s(sample) for sample in worked]
            return _forecast_s(took) * NS_PER_SECOND, float(np.std(took)) * NS_PER_SECOND
        mean, deviation = self._predictor.predict(np.array([_course(worked)]))
        return max(float(mean[0]), 0.0) * NS_PER_SECOND, float(deviation[0]) * NS_PER_SECOND


def _is_single_run(samples: Sequence[StageSample]) -> bool:
    seconds = [sample.second for sample in samples]
    is_rising = all(before < after for before, after in pairwise(seconds))
    return is_rising and seconds[-1] - seconds[0] <= 2 * (len(seconds) - 1)


def _took_s(sample: StageSample) -> float:
    return sample.took_ns / NS_PER_SECOND


def _forecast_s(took_s: Sequence[float]) -> float:
    # The last rise goes on for `AHEAD` seconds, unless it is a fall.
    return took_s[-1] + AHEAD * mean_rise(took_s)


_FORECAST = 0  # the column of `_course` with the forecast


def _course(run: Sequence[StageSample]) -> FloatArray:
    """Return the features of the last `RECENT` seconds: latency, and rows that wait."""
    took = [_took_s(sample) for sample in run]
    now = run[-1]
    # The minute as a circle, as [ssg] Eq. 6 has its second: periodic load is predicted.
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
