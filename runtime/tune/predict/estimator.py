"""Estimator of latency and slack-ready rows in the next second, under any slack.

```
StageSample ─ observe ─▶ history ─ fit ─▶ for each gate two models: latency, slack-ready rows
                                          for each other step one: latency
candidates ─────────── predict ─────────▶ mean and deviation of each, for the next second
```

Source: [ssg] §5.2.1. Differs: models are trained again while running, on a bounded window, and
their deviations are used.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune.predict.calibrated_predictor import CalibratedPredictor
from slackwater.runtime.tune.predict.features import (
    FAR_S,
    OURS,
    Examples,
    Moments,
    examples,
    held_seconds,
    jump_s,
    settle,
    slack_seconds,
    speed_of,
    state,
)
from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.predictors import Predictor, PredictorFactory, make_predictor
from slackwater.runtime.tune.predict.untuned import UntunedStepModel
from slackwater.runtime.tune.record.paths import Paths

JUMP_S, JUMPY_S = 2.0, 300
"""Event time that runs `JUMP_S` ahead of the clock in one second comes in jumps, and is assumed to
do so for the next `JUMPY_S` seconds: between polls it stands still."""
LEAST_EXAMPLES = 20
"""Fewest seconds to train a model with."""


@dataclass(frozen=True)
class Prediction:
    """Prediction of the next second under m slacks. All arrays of shape (m,), ≥ 0.

    Attributes:
        latency_ns: latency_op of the step and comm to it: the longest wait of a row that leaves,
            or is still held at the end. Never falls as the slack grows.
        latency_sd_ns: its standard deviation.
        slack_ready: slrTuples of Eq. 4. Never grows with the slack.
        slack_ready_sd: its standard deviation.
    """

    latency_ns: FloatArray
    latency_sd_ns: FloatArray
    slack_ready: FloatArray
    slack_ready_sd: FloatArray


class NoPredictionError(Exception):
    """A model that was fitted failed to predict."""


@dataclass
class _GateModel:
    latency: CalibratedPredictor
    slack_ready: CalibratedPredictor
    is_fitted: bool = False


class Estimator:
    """Learns the effect of slacks. Pure: equal samples and seeds give equal predictions.

    Args:
        paths: paths of the flow.
        predictor: name in `PREDICTORS` (`runtime/tune/predict/predictors.py`), an object to copy,
            or a function that makes one from a seed.
        rest_predictor: predictor for the steps that are not tuned; `predictor` if None.
        window_s: most seconds to learn from.
        seed: seed of random draws.

    Attributes:
        failures: {step: why it has no model since the last fit}.
        failed_fits: {step: number of fits that failed, or could not predict}.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        predictor: str | Predictor | PredictorFactory = "gp",
        rest_predictor: str | Predictor | PredictorFactory | None = None,
        window_s: int = 900,
        seed: int = 0,
    ) -> None:
        self._paths = paths
        self._history: dict[Subject, deque[StageSample]] = {
            step: deque(maxlen=window_s + 1) for step in paths.inputs
        }
        self._gates = {
            step: _GateModel(
                CalibratedPredictor(
                    make_predictor(predictor, seed=seed + 2 * place),
                    forecast=OURS.index("wait forecast"),
                ),
                CalibratedPredictor(
                    make_predictor(predictor, seed=seed + 2 * place + 1),
                    forecast=OURS.index("slack-ready forecast"),
                ),
            )
            for place, step in enumerate(paths.tuned)
        }
        untuned = [step for step in paths.inputs if step not in self._gates]
        self._rest = {
            step: UntunedStepModel(
                make_predictor(rest_predictor or predictor, seed=seed + 100 + place)
            )
            for place, step in enumerate(untuned)
        }
        # Samples of this run, not recalled ones: predictions start from these.
        self._live: dict[Subject, deque[StageSample]] = {
            step: deque(maxlen=FAR_S + 1) for step in paths.inputs
        }
        self._jumped: dict[Subject, int] = {}  # {step: last second in which event time jumped}
        self.failures: dict[Subject, str] = {}
        self.failed_fits: dict[Subject, int] = {}
        self.fits = 0

    def observe(self, second: int, samples: Mapping[Subject, StageSample]) -> None:
        """Add the samples of a second. Stages and seconds may be missing; seconds may restart.

        Args:
            second: number of the second; samples of other seconds are left out.
            samples: {step: its sample}; steps that the flow does not have are left out.
        """
        for step, sample in samples.items():
            if step in self._history and sample.second == second:
                self._history[step].append(sample)
                self._live[step].append(sample)
                if jump_s(list(self._live[step])[-2:]) >= JUMP_S:
                    self._jumped[step] = second
                if step in self._gates:
                    self._judge(step, self._gates[step])

    def recall(self, history: Iterable[StageSample]) -> None:
        """Add samples of earlier runs, in order for each step, run after run.

        Models learn from them, but predictions do not start from them.
        """
        for sample in history:
            if sample.subject in self._history:
                self._history[sample.subject].append(sample)
        for step, samples in self._history.items():
            if any(jump_s(pair) >= JUMP_S for pair in pairwise(samples)):
                self._jumped[step] = 0

    def fit(self) -> None:
        """Train all models with the samples so far. May take a second or two."""
        self.failures = {}
        self.fits += 1
        for step, model in self._gates.items():
            self._fit_gate(step, model)
        for step, rest in self._rest.items():
            try:
                rest.fit(self._history[step])
            except Exception as problem:  # a custom predictor may raise any error
                self._failed(step, f"the model of latency does not fit: {_words(problem)}")

    def is_ready(self, step: Subject) -> bool:
        """Whether a tuned step has a model, and a second to predict from."""
        return self._gates[step].is_fitted and bool(self._live[step])

    def predict(self, step: Subject, slacks_ns: Int64Array, *, settled: bool = False) -> Prediction:
        """Return the prediction of each slack for the second after the last observed.

        Args:
            step: a tuned step that is ready.
            slacks_ns: shape (m,), in any order.
            settled: predict one second later, as if each slack had held all along. A slack that is
                lowered releases at once all rows that have waited longer, whichever slack follows;
                slacks are chosen by their effect from then on.

        Raises:
            NoPredictionError: the model failed; the step is not ready until the next fit.
        """
        model = self._gates[step]
        assert model.is_fitted, "ask is_ready"
        order = np.argsort(slacks_ns, kind="stable")
        now = self._now(step)
        slack_s = np.array([slack_seconds(int(slacks_ns[place])) for place in order])
        states = np.tile(now, (len(order), 1))
        x = Moments(settle(states, slack_s) if settled else states, slack_s).ours()
        try:
            latency_s, latency_sd_s = model.latency.predict(x)
            early, early_sd = model.slack_ready.predict(x)
        except Exception as problem:
            self._gave_up(step, model, problem)
            raise NoPredictionError(step) from problem
        back = np.empty(len(order), dtype=np.intp)
        back[order] = np.arange(len(order))
        # A row's wait so far is a lower bound of its wait when it leaves.
        least_s = 0.0 if settled else held_seconds(now)
        latency_s = np.maximum.accumulate(np.maximum(latency_s, least_s))
        early = np.minimum.accumulate(np.maximum(early, 0.0))
        return Prediction(
            latency_s[back] * 1e9, latency_sd_s[back] * 1e9, early[back], early_sd[back]
        )

    def speed(self, step: Subject) -> float:
        """Return the speed of event time at a tuned step, per second of clock."""
        return speed_of(self._now(step)) if self._live[step] else 1.0

    def spread_s(self, step: Subject) -> float:
        """Return the event time between rows that arrive together; 0 in an even flow.

        Event time of a polled feed stands still and then jumps, and brings rows of all ages at
        once. A slack, which is age, then releases the older of them at once.
        """
        run = self._run(step)
        if not run or run[-1].second - self._jumped.get(step, -JUMPY_S) >= JUMPY_S:
            return 0.0
        return max(max(sample.skew_ns, sample.peak_ns) for sample in run) / 1e9

    def rest(self, step: Subject) -> tuple[float, float]:
        """Return mean and deviation (ns) of latency_op and comm of an untuned step."""
        try:
            return self._rest[step].predict(self._live[step])
        except Exception as problem:
            self._failed(step, f"the model of latency does not predict: {_words(problem)}")
            raise NoPredictionError(step) from problem

    def _now(self, step: Subject) -> list[float]:
        return state(self._run(step))

    def _run(self, step: Subject) -> list[StageSample]:
        """Return the last seconds without a gap, the newest last."""
        run: list[StageSample] = []
        for sample in reversed(self._live[step]):
            if run and sample.second != run[-1].second - 1:
                break
            run.append(sample)
        return run[::-1]

    def _fit_gate(self, step: Subject, model: _GateModel) -> None:
        problem = _train(model, examples(self._history[step]))
        model.is_fitted = problem is None
        if problem is not None:
            self._failed(step, problem)

    def _judge(self, step: Subject, model: _GateModel) -> None:
        """Compare the last second with its models' predictions from the second before."""
        if not model.is_fitted:
            return
        last = examples(self._run(step)).last()
        if not len(last.slack_s):
            return
        try:
            model.latency.judge(last.ours(), last.wait_s)
            model.slack_ready.judge(last.ours(), last.slack_ready)
        except Exception as problem:
            self._gave_up(step, model, problem)

    def _gave_up(self, step: Subject, model: _GateModel, problem: Exception) -> None:
        model.is_fitted = False
        self._failed(step, f"its model does not predict: {_words(problem)}")

    def _failed(self, step: Subject, problem: str) -> None:
        self.failures[step] = problem
        self.failed_fits[step] = self.failed_fits.get(step, 0) + 1


def _train(model: _GateModel, seconds: Examples) -> str | None:
    """Judge and fit both models; return why one failed, None if none did."""
    if len(seconds.slack_s) < LEAST_EXAMPLES:
        return f"{len(seconds.slack_s)} seconds to learn from, {LEAST_EXAMPLES} are needed"
    x = seconds.ours()
    for what, judged, y in (
        ("latency", model.latency, seconds.wait_s),
        ("slack-ready rows", model.slack_ready, seconds.slack_ready),
    ):
        try:
            judged.fit(x, y)
            judged.predict(x[-50:])
        except Exception as problem:  # a custom predictor may raise any error
            return f"the model of {what} does not fit: {_words(problem)}"
    return None


def _words(problem: Exception) -> str:
    return str(problem) or type(problem).__name__
