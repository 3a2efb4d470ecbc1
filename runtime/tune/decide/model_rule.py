"""What the models would set: the fewest slack-ready events that the deadline allows.

```
samples ─▶ Estimator ── latency and slack-ready of each gate under each slack ─┐
              │ rest of the path                                                ▼
              └────────▶ Trigger (laxity) ─▶ hill climbing ─▶ SetRelease ─▶ gates
```

Source: [ssg] §4.2, §5.2. Beyond the paper: the models are trained again while it runs; what is
unsure of a prediction is kept back, so that a second keeps the deadline with a chosen
probability; and a hold by the clock stands behind each slack, since event time may stand still.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from slackwater.runtime.config import Tuning
from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import Int64Array, ReleaseRule
from slackwater.runtime.tune.decide.climb import Options, chosen, climb
from slackwater.runtime.tune.decide.policies import kept_back_ns
from slackwater.runtime.tune.decide.trigger import Search, triggered
from slackwater.runtime.tune.predict.estimator import Estimator, NoPredictionError
from slackwater.runtime.tune.record.paths import Paths

GRID, FINER = 64, 16
"""Slacks that are compared for a gate, and then between the one chosen and the next."""
FIRST_FIT_S = 30
"""Seconds until the first fit of a run that has no history."""
FORESIGHT_S = 4
"""Slack-ready rows are counted over so many seconds. A slack that is lowered lets go at once of all
that has waited longer: with the next second alone it would look worse, with those after it alone
better than it is, and slacks would swing."""
AGAIN = 0.5
"""What a slack-ready row counts at a gate with another one behind it: that one can still put it in
order, while what leaves the last gate too soon stays out of order, and its window may have gone."""
WORTHLESS = 0.01
"""A slack that shortens the latency by less than this share of the deadline is not worth it."""
MODEL = "model"


class ModelRule:
    """Sets the slacks of a flow by its deadline, once it has a model of every gate.

    Args:
        paths: of the flow.
        deadline_ns: of the flow.
        tuning: see there.
        history: samples of earlier runs, to begin with a model.
        estimator: to predict by; None: as `tuning` says.
    """

    name = "model"

    def __init__(
        self,
        paths: Paths,
        *,
        deadline_ns: int,
        tuning: Tuning,
        history: Iterable[StageSample] = (),
        estimator: Estimator | None = None,
    ) -> None:
        self._paths, self._tuning = paths, tuning
        self._deadline_ns = deadline_ns
        self._budget_ns = deadline_ns - kept_back_ns(deadline_ns)
        self._deviations = NormalDist().inv_cdf(tuning.probability)
        self._estimator = estimator or Estimator(
            paths, predictor=tuning.predictor, window_s=tuning.window_s, seed=tuning.seed
        )
        self._slacks = dict.fromkeys(paths.tuned, 0)
        self._seconds = 0
        self._fit_due = FIRST_FIT_S
        known = list(history)
        self._estimator.recall(known)
        self._has_history = bool(known)

    def begin(self) -> Sequence[SetRelease]:
        """Train on what there is; nothing is predicted before a second was seen."""
        if self._has_history:
            self._estimator.fit()
        return []

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[SetRelease]:
        """Predict, and set slacks anew where the laxity asks for it; nothing without a model."""
        self._estimator.observe(second, samples)
        self._seconds += 1
        if self._seconds >= self._fit_due:
            self._fit_due = self._seconds + self._tuning.retrain_s
            self._estimator.fit()
        gates = [gate for gate in self._paths.tuned if gate in samples]
        if len(gates) == len(self._paths.tuned) and all(map(self._estimator.is_ready, gates)):
            with contextlib.suppress(NoPredictionError):
                return self._tuned()
        return []

    def status(self) -> Mapping[str, object]:
        """Return how often it was fitted, and failed to be."""
        return {
            "fits": self._estimator.fits,
            "failures": dict(self._estimator.failures),
            "failed fits": dict(self._estimator.failed_fits),
        }

    def _tuned(self) -> Sequence[SetRelease]:
        gates = self._paths.tuned
        rest = {s: self._estimator.rest(s) for s in self._paths.inputs if s not in gates}
        rest_ns = {stage: mean for stage, (mean, _) in rest.items()}
        rest_deviation_ns = {stage: deviation for stage, (_, deviation) in rest.items()}

        def latency_ns(op_ns: Mapping[str, float], deviation_ns: Mapping[str, float]) -> float:
            return self._paths.careful_latency_ns(
                {**rest_ns, **op_ns},
                {**rest_deviation_ns, **deviation_ns},
                deviations=self._deviations,
            )

        soon, then = self._options({gate: self._grid(gate) for gate in gates})
        none = dict.fromkeys(gates, 0)
        # What waits too long already leaves in the next second, whatever the slacks; and what no
        # slack can keep must not cost the order of events that would be ready anyway.
        worthless_ns = WORTHLESS * self._deadline_ns
        limits = _Limits(
            latency_ns,
            soon_ns=max(self._budget_ns, latency_ns(*chosen(soon, none)) + worthless_ns),
            then_ns=max(self._budget_ns, latency_ns(*chosen(then, none)) + worthless_ns),
        )
        places = {
            gate: int(np.abs(option.slacks_ns - self._slacks[gate]).argmin())
            for gate, option in then.items()
        }
        search = triggered(
            max(latency_ns(*chosen(then, places)), latency_ns(*chosen(soon, places))),
            deadline_ns=self._budget_ns,
            alpha=self._tuning.alpha,
            slack_ready=sum(float(then[gate].slack_ready[at]) for gate, at in places.items()),
        )
        slacks = self._slacks
        if search is not Search.NONE:
            start = places if search is Search.RAISE else none
            places = limits.reached(soon, then, places, limits.wanted(then, start))
            soon, then = self._options(
                {g: _finer(then[g].slacks_ns, at) for g, at in places.items()}
            )
            places = limits.reached(soon, then, none, limits.wanted(then, none))
            slacks = {gate: int(then[gate].slacks_ns[place]) for gate, place in places.items()}
        expected_ns = {**rest_ns, **chosen(then, places)[0]}
        alone_ns = self._budget_ns - latency_ns(dict.fromkeys(gates, 0.0), {})
        return [
            self._setting(gate, slack_ns, expected_ns, alone_ns)
            for gate, slack_ns in slacks.items()
        ]

    def _setting(
        self, gate: str, slack_ns: int, expected_ns: Mapping[str, float], alone_ns: float
    ) -> SetRelease:
        """Return a slack, and behind it the hold that all else leaves of the deadline.

        Where event time comes in jumps the hold stands in for the slack; if no other gate shares
        the deadline there is none, and `alone_ns` is what the rest surely leaves.
        """
        others_ns = self._paths.latency_through_ns(gate, {**expected_ns, gate: 0.0})
        hold_ns = max(self._budget_ns - others_ns, 0.0)
        self._slacks[gate] = slack_ns
        if spread_s := self._estimator.spread_s(gate):
            if len(self._paths.tuned) == 1:
                return SetRelease(gate, ReleaseRule.hold(max(int(alone_ns), 0)), by=MODEL)
            hold_ns = min(hold_ns, slack_ns / self._estimator.speed(gate))
            slack_ns += int(spread_s * 1e9)
        return SetRelease(gate, ReleaseRule.slack(slack_ns, hold_ns=int(hold_ns)), by=MODEL)

    def _options(
        self, grids: Mapping[str, Int64Array]
    ) -> tuple[dict[str, Options], dict[str, Options]]:
        """Return what slacks bring in the next second, and what in those after it: {gate: …}."""
        both: tuple[dict[str, Options], dict[str, Options]] = ({}, {})
        for gate, slacks_ns in grids.items():
            soon = self._estimator.predict(gate, slacks_ns)
            then = self._estimator.predict(gate, slacks_ns, settled=True)
            worth = AGAIN ** self._paths.gates_behind(gate)
            slack_ready = worth * (soon.slack_ready + (FORESIGHT_S - 1) * then.slack_ready)
            for options, brings in zip(both, (soon, then), strict=True):
                options[gate] = Options(
                    slacks_ns, brings.latency_ns, brings.latency_sd_ns, slack_ready
                )
        return both

    def _grid(self, gate: str) -> Int64Array:
        """Return the slacks to compare: from nothing to what the deadline can be worth."""
        most_ns = self._deadline_ns * max(1.0, self._estimator.speed(gate))
        return np.linspace(0, most_ns, GRID).astype(np.int64)


@dataclass(frozen=True)
class _Limits:
    """What the latency may be.

    Attributes:
        latency_ns: ({gate: latency}, {gate: deviation}) -> that of the flow, with its margin.
        soon_ns: the most in the next second.
        then_ns: the most in those after it.
    """

    latency_ns: Callable[[Mapping[str, float], Mapping[str, float]], float]
    soon_ns: float
    then_ns: float

    def wanted(self, then: Mapping[str, Options], start: Mapping[str, int]) -> dict[str, int]:
        """Return the places that the climb finds for the seconds after the next."""
        return climb(then, start, latency_ns=self.latency_ns, deadline_ns=self.then_ns)

    def reached(
        self,
        soon: Mapping[str, Options],
        then: Mapping[str, Options],
        here: Mapping[str, int],
        wanted: Mapping[str, int],
    ) -> dict[str, int]:
        """Return how far one can go from here to what is wanted in the next second.

        What is lowered is so at once; what is raised, only as far as the others, which have still
        to let go of what waits there, allow it.
        """
        places = {gate: min(here[gate], wanted[gate]) for gate in then}
        for gate in then:
            while places[gate] < wanted[gate]:
                raised = places | {gate: places[gate] + 1}
                if self.latency_ns(*chosen(soon, raised)) > self.soon_ns:
                    break
                places = raised
        return places


def _finer(slacks_ns: Int64Array, place: int) -> Int64Array:
    """Return slacks from a place of a grid to the next one."""
    above = min(place + 1, len(slacks_ns) - 1)
    return np.linspace(slacks_ns[place], slacks_ns[above], FINER).astype(np.int64)
