"""SLTuner: the fewest slack-ready events that the deadline allows, second by second.

```
samples ─▶ Estimator ── latency and slack-ready of each gate under each slack ─┐
              │ rest of the path                                                ▼
              └────────▶ Trigger (laxity) ─▶ hill climbing ─▶ SetSlack ─▶ gates
```

Source: [ssg] §4.2, §5.2. Beyond the paper: the models are trained again while it runs; what is
unsure of a prediction is kept back, so that a second keeps the deadline with a chosen
probability; and a hold by the clock stands behind each slack, since event time may stand still.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist

import numpy as np

from runtime.config import Tuning
from runtime.measure.samples import StageSample, by_second
from runtime.model import Int64Array
from runtime.tune.climb import Options, climb
from runtime.tune.contract import SetSlack
from runtime.tune.estimator import Estimator
from runtime.tune.paths import Paths
from runtime.tune.policies import EvenSplit
from runtime.tune.trigger import Search, triggered

GRID = 64
"""Slacks that are compared for a gate."""
FORESIGHT_S = 4
"""Slack-ready rows are counted over so many seconds. A slack that is lowered lets go at once of all
that has waited longer: with the next second alone it would look worse, with those after it alone
better than it is, and slacks would swing."""
WORTHLESS = 0.01
"""A slack that shortens the latency by less than this share of the deadline is not worth it."""
SAFE_RULE, MODEL = "safe rule", "model"


class SlackTuner:
    """Sets the slacks of a flow by its deadline.

    Args:
        paths: of the flow.
        deadline_ns: of the flow.
        tuning: see there.
        history: samples of earlier runs, to begin with a model.
    """

    name = "sltuner"

    def __init__(
        self,
        paths: Paths,
        *,
        deadline_ns: int,
        tuning: Tuning,
        history: Iterable[StageSample] = (),
    ) -> None:
        self._paths, self._deadline_ns, self._tuning = paths, deadline_ns, tuning
        self._deviations = NormalDist().inv_cdf(tuning.probability)
        self._safe = EvenSplit(paths, deadline_ns=deadline_ns)
        self._estimator = Estimator(
            paths, predictor=tuning.predictor, window_s=tuning.window_s, seed=tuning.seed
        )
        self._slacks: dict[str, int] = {}
        self._seconds = 0
        self._fit_due = FIRST_FIT_S
        self._counts = {SAFE_RULE: 0, MODEL: 0}
        self._has_history = False
        for second, samples in by_run(history):
            self._estimator.observe(second, samples)
            self._has_history = True

    def begin(self) -> Sequence[SetSlack]:
        """Train on what there is; until a model exists, use the safe rule."""
        if self._has_history:
            self._estimator.fit()
        return self._safely(self._safe.begin())

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[SetSlack]:
        """Predict, and set slacks anew where the laxity asks for it."""
        self._estimator.observe(second, samples)
        safe = self._safe.decide(second, samples)
        self._seconds += 1
        if self._seconds >= self._fit_due:
            self._estimator.fit()
            self._fit_due = self._seconds + self._tuning.retrain_s
        gates = [gate for gate in self._paths.tuned if gate in samples]
        if len(gates) < len(self._paths.tuned) or not all(map(self._estimator.is_ready, gates)):
            self._counts[SAFE_RULE] += 1
            return self._safely(safe)
        self._counts[MODEL] += 1
        return self._tuned(samples)

    def status(self) -> Mapping[str, object]:
        """Return what the reports say of it: seconds under each rule, and failures to fit."""
        return {
            "seconds": dict(self._counts),
            "fits": self._estimator.fits,
            "failures": dict(self._estimator.failures),
        }

    def _safely(self, settings: Sequence[SetSlack]) -> Sequence[SetSlack]:
        self._slacks = {one.stage: one.slack_ns or 0 for one in settings}
        return [
            SetSlack(one.stage, one.slack_ns, hold_ns=one.slack_ns, by=SAFE_RULE)
            for one in settings
        ]

    def _tuned(self, samples: Mapping[str, StageSample]) -> Sequence[SetSlack]:
        options = {gate: self._options(gate, samples[gate]) for gate in self._paths.tuned}
        others = [stage for stage in self._paths.inputs if stage not in options]
        rest = {stage: self._estimator.rest(stage) for stage in others}
        rest_ns = {stage: mean for stage, (mean, _) in rest.items()}
        rest_deviation_ns = {stage: deviation for stage, (_, deviation) in rest.items()}

        def latency_ns(op_ns: Mapping[str, float], deviation_ns: Mapping[str, float]) -> float:
            return self._paths.careful_latency_ns(
                {**rest_ns, **op_ns},
                {**rest_deviation_ns, **deviation_ns},
                deviations=self._deviations,
            )

        here = {
            gate: int(np.abs(option.slacks_ns - self._slacks[gate]).argmin())
            for gate, option in options.items()
        }
        now_ns = {gate: float(options[gate].latency_ns[at]) for gate, at in here.items()}
        sure_ns = {gate: float(options[gate].deviation_ns[at]) for gate, at in here.items()}
        search = triggered(
            latency_ns(now_ns, sure_ns), deadline_ns=self._deadline_ns, alpha=self._tuning.alpha
        )
        places = here
        if search is not Search.NONE:
            start = here if search is Search.RAISE else dict.fromkeys(options, 0)
            least_ns = latency_ns(
                {gate: float(option.latency_ns[0]) for gate, option in options.items()},
                {gate: float(option.deviation_ns[0]) for gate, option in options.items()},
            )
            # What no slack can keep must not cost the order of events that would be ready anyway.
            most_ns = max(self._deadline_ns, least_ns + WORTHLESS * self._deadline_ns)
            places = climb(options, start, latency_ns=latency_ns, deadline_ns=most_ns)
        chosen_ns = {gate: float(options[gate].latency_ns[at]) for gate, at in places.items()}
        settings = []
        for gate, place in places.items():
            others_ns = {**rest_ns, **chosen_ns, gate: 0.0}
            left_ns = self._deadline_ns - self._paths.latency_through_ns(gate, others_ns)
            slack_ns = int(options[gate].slacks_ns[place])
            self._slacks[gate] = slack_ns
            settings.append(SetSlack(gate, slack_ns, hold_ns=max(int(left_ns), 0), by=MODEL))
        return settings

    def _options(self, gate: str, sample: StageSample) -> Options:
        slacks_ns = self._grid(sample)
        at_once = self._estimator.predict(gate, slacks_ns)
        then = self._estimator.predict(gate, slacks_ns, settled=True)
        slack_ready = at_once.slack_ready + (FORESIGHT_S - 1) * then.slack_ready
        return Options(slacks_ns, then.latency_ns, then.latency_sd_ns, slack_ready)

    def _grid(self, sample: StageSample) -> Int64Array:
        """Return the slacks to compare: from nothing to what the deadline can be worth."""
        most_ns = self._deadline_ns * max(1.0, self._estimator.speed(sample.stage))
        return np.linspace(0, most_ns, GRID).astype(np.int64)


FIRST_FIT_S = 30


def by_run(history: Iterable[StageSample]) -> Iterable[tuple[int, Mapping[str, StageSample]]]:
    """Return (second, {stage: sample}) of several runs, one after the other."""
    run: list[StageSample] = []
    last = -1
    for sample in history:
        if sample.second < last:
            yield from by_second(run).items()
            run = []
        run.append(sample)
        last = sample.second
    yield from by_second(run).items()
