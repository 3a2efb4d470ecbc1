"""The Estimator: what a slack would do in the next second, learned from the seconds before.

```
StageSample ─ observe ─▶ history ─ fit ─▶ for each gate two models: latency, slack-ready rows
                                          for each other stage one: latency
candidates ─────────── predict ─────────▶ mean and deviation of each, for the next second
```

Source: [ssg] §5.2.1. Beyond it: trained again while running, on a bounded window, and the
deviations are used.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import Int64Array
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
from slackwater.runtime.tune.predict.untuned import UntunedStageModel
from slackwater.runtime.tune.record.paths import Paths

JUMP_S, JUMPY_S = 2.0, 300
"""Event time that runs so far ahead of the clock in one second comes in jumps, and is taken to go
on so for some minutes: between polls it stands still."""
LEAST_EXAMPLES = 20
"""Seconds that a model needs at least."""


@dataclass(frozen=True)
class Prediction:
    """What the next second brings under m slacks. All arrays of shape (m,), ≥ 0.

    Attributes:
        latency_ns: latency_op of the stage and comm to it: the longest wait of a row that leaves,
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
    """A model that was fitted does not predict."""


@dataclass
class _GateModel:
    latency: CalibratedPredictor
    slack_ready: CalibratedPredictor
    is_fitted: bool = False


class Estimator:
    """Learns what slacks do. Pure: the same samples and seed give the same predictions.

    Args:
        paths: of the flow.
        predictor: one of `PREDICTORS` (`runtime/tune/predict/predictors.py`), an object to be
            copied, or what makes one from a seed.
        rest_predictor: the same for the stages that are not tuned; None: the same one.
        window_s: how many seconds to learn from at most.
        seed: of what is drawn.

    Attributes:
        failures: {stage: why it has no model of its own since the last fit}.
        failed_fits: {stage: how many fits have failed, or predicted nothing of use}.
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
        self._history: dict[str, deque[StageSample]] = {
            stage: deque(maxlen=window_s + 1) for stage in paths.inputs
        }
        self._gates = {
            stage: _GateModel(
                CalibratedPredictor(
                    make_predictor(predictor, seed=seed + 2 * place),
                    forecast=OURS.index("wait forecast"),
                ),
                CalibratedPredictor(
                    make_predictor(predictor, seed=seed + 2 * place + 1),
                    forecast=OURS.index("slack-ready forecast"),
                ),
            )
            for place, stage in enumerate(paths.tuned)
        }
        others = [stage for stage in paths.inputs if stage not in self._gates]
        self._rest = {
            stage: UntunedStageModel(
                make_predictor(rest_predictor or predictor, seed=seed + 100 + place)
            )
            for place, stage in enumerate(others)
        }
        # Observed, not only recalled: what comes next is predicted from these.
        self._live: dict[str, deque[StageSample]] = {
            stage: deque(maxlen=FAR_S + 1) for stage in paths.inputs
        }
        self._jumped: dict[str, int] = {}  # in which second event time has jumped last
        self.failures: dict[str, str] = {}
        self.failed_fits: dict[str, int] = {}
        self.fits = 0

    def observe(self, second: int, samples: Mapping[str, StageSample]) -> None:
        """Take the samples of a second; stages may be missing, and seconds; they may start anew.

        Args:
            second: which; a sample of another one is left out.
            samples: {stage: its sample}; stages that the flow does not have are left out.
        """
        for stage, sample in samples.items():
            if stage in self._history and sample.second == second:
                self._history[stage].append(sample)
                self._live[stage].append(sample)
                if jump_s(list(self._live[stage])[-2:]) >= JUMP_S:
                    self._jumped[stage] = second
                if stage in self._gates:
                    self._judge(stage, self._gates[stage])

    def recall(self, history: Iterable[StageSample]) -> None:
        """Take samples of earlier runs, each stage's in their order, one run after the other.

        They are learned from; but what comes next is not predicted from them.
        """
        for sample in history:
            if sample.stage in self._history:
                self._history[sample.stage].append(sample)
        for stage, known in self._history.items():
            if any(jump_s(pair) >= JUMP_S for pair in pairwise(known)):
                self._jumped[stage] = 0

    def fit(self) -> None:
        """Train all models with the seconds observed so far. May take a second or two."""
        self.failures = {}
        self.fits += 1
        for stage, model in self._gates.items():
            self._fit_gate(stage, model)
        for stage, rest in self._rest.items():
            try:
                rest.fit(self._history[stage])
            except Exception as problem:  # whatever a predictor of the user's own raises
                self._failed(stage, f"the model of latency does not fit: {_words(problem)}")

    def is_ready(self, stage: str) -> bool:
        """Whether a tuned stage can be predicted: it has a model, and a second to go on from."""
        return self._gates[stage].is_fitted and bool(self._live[stage])

    def predict(self, stage: str, slacks_ns: Int64Array, *, settled: bool = False) -> Prediction:
        """Return what each slack would do in the second after the last one observed, or later.

        Args:
            stage: a tuned one that is ready.
            slacks_ns: shape (m,), in any order.
            settled: of the second after that, as if each had held all along. A slack that is
                lowered lets go at once of what has waited longer, which no slack can undo any
                more; what it brings from then on is what one chooses it by.

        Raises:
            NoPredictionError: it has failed, and is not ready until the next fit.
        """
        model = self._gates[stage]
        assert model.is_fitted, "ask is_ready"
        order = np.argsort(slacks_ns, kind="stable")
        now = self._now(stage)
        slack_s = np.array([slack_seconds(int(slacks_ns[place])) for place in order])
        states = np.tile(now, (len(order), 1))
        x = Moments(settle(states, slack_s) if settled else states, slack_s).ours()
        try:
            latency_s, latency_sd_s = model.latency.predict(x)
            early, early_sd = model.slack_ready.predict(x)
        except Exception as problem:
            self._gave_up(stage, model, problem)
            raise NoPredictionError(stage) from problem
        back = np.empty(len(order), dtype=np.intp)
        back[order] = np.arange(len(order))
        # What has waited so long already will have waited longer when it leaves.
        least_s = 0.0 if settled else held_seconds(now)
        latency_s = np.maximum.accumulate(np.maximum(latency_s, least_s))
        early = np.minimum.accumulate(np.maximum(early, 0.0))
        return Prediction(
            latency_s[back] * 1e9, latency_sd_s[back] * 1e9, early[back], early_sd[back]
        )

    def speed(self, stage: str) -> float:
        """Return how fast event time runs at a tuned stage, a second of the clock."""
        return speed_of(self._now(stage)) if self._live[stage] else 1.0

    def spread_s(self, stage: str) -> float:
        """Return how far apart rows that come together are, in event time; 0 if they flow evenly.

        Of a feed that is polled event time stands still and then jumps, and brings rows of all
        ages at once. A slack, which is age, then lets the older of them go at once.
        """
        run = self._run(stage)
        if not run or run[-1].second - self._jumped.get(stage, -JUMPY_S) >= JUMPY_S:
            return 0.0
        return max(max(one.skew_ns, one.peak_ns) for one in run) / 1e9

    def rest(self, stage: str) -> tuple[float, float]:
        """Return mean and deviation (ns) of latency_op and comm of a stage that is not tuned."""
        try:
            return self._rest[stage].predict(self._live[stage])
        except Exception as problem:
            self._failed(stage, f"the model of latency does not predict: {_words(problem)}")
            raise NoPredictionError(stage) from problem

    def _now(self, stage: str) -> list[float]:
        return state(self._run(stage))

    def _run(self, stage: str) -> list[StageSample]:
        """Return the last seconds that follow each other, the newest last."""
        run: list[StageSample] = []
        for sample in reversed(self._live[stage]):
            if run and sample.second != run[-1].second - 1:
                break
            run.append(sample)
        return run[::-1]

    def _fit_gate(self, stage: str, model: _GateModel) -> None:
        known = examples(self._history[stage])
        problem = _train(model, known)
        model.is_fitted = problem is None
        if problem is not None:
            self._failed(stage, problem)

    def _judge(self, stage: str, model: _GateModel) -> None:
        """Compare the second just observed with what its models had made of the one before."""
        if not model.is_fitted:
            return
        last = examples(self._run(stage)).last()
        if not len(last.slack_s):
            return
        try:
            model.latency.judge(last.ours(), last.wait_s)
            model.slack_ready.judge(last.ours(), last.slack_ready)
        except Exception as problem:
            self._gave_up(stage, model, problem)

    def _gave_up(self, stage: str, model: _GateModel, problem: Exception) -> None:
        model.is_fitted = False
        self._failed(stage, f"its model does not predict: {_words(problem)}")

    def _failed(self, stage: str, problem: str) -> None:
        self.failures[stage] = problem
        self.failed_fits[stage] = self.failed_fits.get(stage, 0) + 1


def _train(model: _GateModel, known: Examples) -> str | None:
    """Judge and fit both models; return why it failed, or None."""
    if len(known.slack_s) < LEAST_EXAMPLES:
        return f"{len(known.slack_s)} seconds to learn from, {LEAST_EXAMPLES} are needed"
    x = known.ours()
    for what, judged, y in (
        ("latency", model.latency, known.wait_s),
        ("slack-ready rows", model.slack_ready, known.slack_ready),
    ):
        try:
            judged.fit(x, y)
            judged.predict(x[-50:])
        except Exception as problem:  # whatever a predictor of the user's own raises
            return f"the model of {what} does not fit: {_words(problem)}"
    return None


def _words(problem: Exception) -> str:
    return str(problem) or type(problem).__name__
