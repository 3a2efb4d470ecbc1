"""Slacks chosen by models: the fewest slack-ready events within the deadline.

```
samples ─▶ Estimator ── latency and slack-ready of each gate under each slack ─┐
              │ rest of the path                                                ▼
              └────────▶ Trigger (laxity) ─▶ hill climbing ─▶ SetRelease ─▶ gates
```

Source: [ssg] §4.2, §5.2. Differs: the models are trained again while the flow runs; a margin for a
prediction's uncertainty is kept back, so that a second keeps the deadline with a chosen
probability; and each slack has a hold by the clock besides, since event time may stand still.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist

import numpy as np

from slackwater.runtime.config import Tuning
from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import Int64Array, ReleaseRule
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune.decide.climb import Options, chosen, climb
from slackwater.runtime.tune.decide.policies import deadline_margin_ns
from slackwater.runtime.tune.predict.estimator import Estimator, NoPredictionError
from slackwater.runtime.tune.record.paths import Paths

GRID, FINER = 64, 16
"""Slacks compared for a gate, and then between the chosen one and the next."""
FIRST_FIT_S = 30
"""Seconds until the first fit of a run that has no history."""
FORESIGHT_S = 4
"""Seconds over which slack-ready rows are predicted. A lowered slack releases at once all rows that
have waited longer: by the next second alone it would look worse, by the seconds after it alone
better than it is, and slacks would oscillate."""
AGAIN = 0.5
"""Weight of a slack-ready row at a gate with another gate downstream: that gate can still put it in
order, while a row that leaves the last gate too soon stays out of order, and its window may be
closed."""
WORTHLESS = 0.01
"""Least share of the deadline by which a slack must shorten the latency to be worth setting."""
MODEL = "model"


class ModelRule:
    """Rule that sets slacks by the deadline, once every gate has a model.

    Args:
        paths: paths of the flow.
        deadline_ns: deadline of the flow.
        tuning: settings of the user; see `Tuning`.
        history: samples of earlier runs, to begin with a model.
        estimator: estimator for predictions; None if it is made by `tuning`.
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
        self._budget_ns = deadline_ns - deadline_margin_ns(deadline_ns)
        self._deviations = NormalDist().inv_cdf(tuning.probability)
        self._estimator = estimator or Estimator(
            paths, predictor=tuning.predictor, window_s=tuning.window_s, seed=tuning.seed
        )
        self._slacks = dict.fromkeys(paths.tuned, 0)
        self._seconds = 0
        self._fit_due = FIRST_FIT_S
        samples = list(history)
        self._estimator.recall(samples)
        self._has_history = bool(samples)

    def begin(self) -> Sequence[SetRelease]:
        """Train on the history; no slack is set before the first second."""
        if self._has_history:
            self._estimator.fit()
        return []

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        """Predict, and set new slacks if the laxity requires it; empty without models."""
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
        """Return the numbers of fits and of failed fits."""
        return {
            "fits": self._estimator.fits,
            "failures": {step.name: why for step, why in self._estimator.failures.items()},
            "failed fits": {step.name: n for step, n in self._estimator.failed_fits.items()},
        }

    def _tuned(self) -> Sequence[SetRelease]:
        gates = self._paths.tuned
        rest = {s: self._estimator.rest(s) for s in self._paths.inputs if s not in gates}
        rest_ns = {step: mean for step, (mean, _) in rest.items()}
        rest_deviation_ns = {step: deviation for step, (_, deviation) in rest.items()}

        def latency_ns(
            op_ns: Mapping[Subject, float], deviation_ns: Mapping[Subject, float]
        ) -> float:
            return self._paths.careful_latency_ns(
                {**rest_ns, **op_ns},
                {**rest_deviation_ns, **deviation_ns},
                deviations=self._deviations,
            )

        soon, then = self._options({gate: self._grid(gate) for gate in gates})
        none = dict.fromkeys(gates, 0)
        # Rows that wait too long already leave in the next second, whatever the slacks; and a
        # deadline that no slack can keep must not cost the order of events that get ready anyway.
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
        self, gate: Subject, slack_ns: int, expected_ns: Mapping[Subject, float], alone_ns: float
    ) -> SetRelease:
        """Return a slack, with the hold that the rest of the path leaves.

        Where event time comes in jumps the hold replaces the slack; with a single gate only the
        hold is set, to `alone_ns`, which the rest surely leaves.
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
        self, grids: Mapping[Subject, Int64Array]
    ) -> tuple[dict[Subject, Options], dict[Subject, Options]]:
        """Return predictions for the next second, and for those after it, {gate: …}."""
        both: tuple[dict[Subject, Options], dict[Subject, Options]] = ({}, {})
        for gate, slacks_ns in grids.items():
            soon = self._estimator.predict(gate, slacks_ns)
            then = self._estimator.predict(gate, slacks_ns, settled=True)
            worth = AGAIN ** self._paths.gates_downstream(gate)
            slack_ready = worth * (soon.slack_ready + (FORESIGHT_S - 1) * then.slack_ready)
            for options, brings in zip(both, (soon, then), strict=True):
                options[gate] = Options(
                    slacks_ns, brings.latency_ns, brings.latency_sd_ns, slack_ready
                )
        return both

    def _grid(self, gate: Subject) -> Int64Array:
        most_ns = self._deadline_ns * max(1.0, self._estimator.speed(gate))
        return np.linspace(0, most_ns, GRID).astype(np.int64)


@dataclass(frozen=True)
class _Limits:
    """Limits of the latency.

    Attributes:
        latency_ns: ({gate: latency}, {gate: deviation}) -> latency of the flow, with its margin.
        soon_ns: limit in the next second.
        then_ns: limit in the seconds after it.
    """

    latency_ns: Callable[[Mapping[Subject, float], Mapping[Subject, float]], float]
    soon_ns: float
    then_ns: float

    def wanted(
        self, then: Mapping[Subject, Options], start: Mapping[Subject, int]
    ) -> dict[Subject, int]:
        """Return the places by hill climbing, for the seconds after the next."""
        return climb(then, start, latency_ns=self.latency_ns, deadline_ns=self.then_ns)

    def reached(
        self,
        soon: Mapping[Subject, Options],
        then: Mapping[Subject, Options],
        here: Mapping[Subject, int],
        wanted: Mapping[Subject, int],
    ) -> dict[Subject, int]:
        """Return the places for the next second, on the way to the wanted ones.

        Slacks are lowered at once, and raised only as far as the other gates allow, which still
        have to release their waiting rows.
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
    above = min(place + 1, len(slacks_ns) - 1)
    return np.linspace(slacks_ns[place], slacks_ns[above], FINER).astype(np.int64)


class Search(Enum):
    """Kind of search, if any."""

    NONE = "none"
    RELAX = "relax"
    """Too little laxity, Eq. 9: begin with small slacks, to keep the deadline again soon."""
    RAISE = "raise"
    """Much laxity, Eq. 10: begin with the current slacks."""


def triggered(
    latency_ns: float, *, deadline_ns: int, alpha: float, slack_ready: float = 0.0
) -> Search:
    """Return the search that the laxity, deadline − latency, requires.

    Args:
        latency_ns: the latency expected under the current slacks.
        deadline_ns: deadline of the flow.
        alpha: α, in (0, 1); the smaller, the sooner slacks are raised.
        slack_ready: rows expected to leave as slack-ready under the current slacks.

    Source: [ssg] Eq. 9 and 10. Differs: a search also begins while rows leave as slack-ready. Where
    gates share a deadline the laxity can be small with the slack at the wrong gate.
    """
    laxity_ns = deadline_ns - latency_ns
    if laxity_ns <= 0 or slack_ready >= 1:
        return Search.RELAX
    return Search.RAISE if laxity_ns >= alpha * deadline_ns else Search.NONE
