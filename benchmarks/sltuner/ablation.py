"""What each part of the SLTuner's models is worth: the forecast, and the Gaussian processes.

The models alone, without the simple rules beside them (those hold until the first fit), over the
flows of `sltuner-zipf` (one gate, a rest of the path that moves) and `sltuner-chain` (two gates).
What a part adds is seen by leaving it out: a gate then has its forecast alone, with deviations as
large as it was off; a stage of the rest is taken to rise as it did in the last two seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.frame import Claim, Options, Result
from benchmarks.side_by_side import side_by_side
from benchmarks.sltuner import chain, zipf
from benchmarks.sltuner.deadline import HEADER, OVER_AT_MOST, MakePolicy, Outcome
from benchmarks.sltuner.deadline import named as policy_named
from benchmarks.sltuner.deadline import run as run_once
from benchmarks.sltuner.rival_policies import HELD_SPLIT, RIVALS
from slackwater.runtime.config import Limits, Tuning
from slackwater.runtime.control import FlowGraph
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.tune import Paths, SetRelease, SlackPolicy
from slackwater.runtime.tune.decide.model_rule import ModelRule
from slackwater.runtime.tune.predict.estimator import Estimator
from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.predictors import PREDICTORS, PredictorFactory

SECONDS, QUICK_SECONDS = 240, 140
"""Both see each gate wait: the second one of the chain does so from 105 on."""
LIMITS = Limits(source_gap_ns=50_000_000)
"""Sources look less often than in the contests: simulated sooner, and all parts see the same."""
ONE, TWO = "one gate", "two gates"
FORECAST, GATES, REST, BOTH = (
    "forecast alone",
    "and Gaussian processes at the gates",
    "and Gaussian processes for the rest",
    "and both",
)
LITTLE = 0.15
"""Next to nothing: a part that changes the slack-ready rows by no more than this share."""
TWO_FIFTHS = 0.6
"""What is left of rows that are two fifths fewer."""


class Nothing:
    """Learns that there is nothing to learn but how far off the forecast is."""

    def __init__(self, seed: int = 0) -> None:
        del seed

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Note how large y is."""
        del x
        self._deviation = float(np.sqrt(np.mean(y**2)))

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return no correction, and that deviation."""
        return np.zeros(len(x)), np.full(len(x), self._deviation)


class AsBefore:
    """Leaves what is not tuned to the forecast: it cannot be fitted."""

    def __init__(self, seed: int = 0) -> None:
        del seed

    def fit(self, x: FloatArray, y: FloatArray) -> None:
        """Fail: then nothing is predicted by it."""
        raise ArithmeticError(f"{len(x)} seconds, {len(y)} latencies: left out on purpose")

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Is not asked."""
        raise ArithmeticError(f"{len(x)} seconds: left out on purpose")


GP = PREDICTORS["gp"]
PARTS: Mapping[str, tuple[PredictorFactory, PredictorFactory]] = {
    FORECAST: (Nothing, AsBefore),
    GATES: (GP, AsBefore),
    REST: (Nothing, GP),
    BOTH: (GP, GP),
}
"""{what is there: (the model of a gate, that of another stage)}"""


class ModelsAlone:
    """The models' own choice, and the even split by the clock while there is none."""

    def __init__(self, plan: Plan, name: str) -> None:
        self.name = name
        assert plan.deadline_ns is not None, "an experiment has a deadline"
        graph, tuning, deadline_ns = FlowGraph.of(plan), Tuning(), plan.deadline_ns
        paths = Paths.of(graph)
        gates, rest = PARTS[name]
        estimator = Estimator(
            paths,
            predictor=gates,
            rest_predictor=rest,
            window_s=tuning.window_s,
            seed=tuning.seed,
        )
        self._models = ModelRule(paths, deadline_ns=deadline_ns, tuning=tuning, estimator=estimator)
        self._split = RIVALS[HELD_SPLIT](graph)

    def begin(self) -> Sequence[SetRelease]:
        """Begin with the even split."""
        self._models.begin()
        return self._split.begin()

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        """Ask both; the models' word counts."""
        safe = self._split.decide(second, samples)
        return self._models.decide(second, samples) or safe


def run(options: Options) -> Result:
    """Run every combination over the same streams."""
    seconds = QUICK_SECONDS if options.quick else SECONDS
    flows = {
        ONE: replace(zipf.experiment(seconds), limits=LIMITS),
        TWO: replace(chain.experiment(seconds), limits=LIMITS),
    }
    names = [HELD_SPLIT, *PARTS]
    result = Result(f"{seconds} s of virtual time, simulated, one stream seed", HEADER)
    tasks = [
        lambda one=one, name=name: run_once(one, _policy(name), seed=options.seed)
        for one in flows.values()
        for name in names
    ]
    outcomes = iter(side_by_side(tasks, what="runs"))
    for flow in flows:
        found = {name: next(outcomes) for name in names}
        for name, outcome in found.items():
            figures = outcome.figures()
            result.rows.append(
                [f"{flow}, {name}", f"{outcome.over:.1%}", *list(figures.values())[1:-1]]
            )
            result.figures[f"{flow}, {name}"] = figures
        result.claims += _claims(flow, found)
    result.notes.append("the even split by the clock holds for the first 30 s, until the first fit")
    return result


def _claims(flow: str, found: Mapping[str, Outcome]) -> list[Claim]:
    """Say what the parts add."""

    def ratio(name: str, without: str) -> float:
        return found[name].slack_ready_rows / max(found[without].slack_ready_rows, 1)

    kept = f"{flow}: both, share of seconds over the deadline"
    claims = [Claim(kept, found[BOTH].over, "<=", OVER_AT_MOST)]
    rows = f"{flow}: slack-ready rows,"
    if flow == TWO:
        return claims + [
            Claim(f"{rows} both / {name}: two fifths fewer", ratio(BOTH, name), "<=", TWO_FIFTHS)
            for name in (FORECAST, HELD_SPLIT)
        ]
    at_gates = abs(ratio(BOTH, REST) - 1)
    return [
        *claims,
        Claim(f"{rows} change by the process at the gate: next to nothing", at_gates, "<=", LITTLE),
        Claim(f"{rows} both / nothing learned of the rest", ratio(BOTH, GATES), "<=", 1 - LITTLE),
    ]


def _policy(name: str) -> MakePolicy:
    def make(plan: Plan) -> SlackPolicy:
        return ModelsAlone(plan, name)

    return policy_named(name) if name == HELD_SPLIT else make
