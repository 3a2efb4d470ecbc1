"""How well the next second of a gate is predicted: four models, two sets of features, two splits.

[ssg] Table 1. The traffic join of §6 (500 + 500 reports/s, within 5 s) under the alternating Zipf
delays, in the simulator. "We run the application for different slack threshold parameters": five
runs of 370 s, each with a slack of its own, about 1,850 seconds; beside them one run whose slack
changes at random every few seconds, which is what a tuner sees that is at work.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result
from benchmarks.sltuner.deadline import LIMITS, MakePolicy
from benchmarks.sltuner.late_city import source
from benchmarks.sltuner.rival_predictors import MODELS
from examples.city import zipf_delays
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND, ReleaseRule
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.simulate import CostModel, LinkModel, Simulation
from slackwater.runtime.tune import Paths, SetRelease
from slackwater.runtime.tune.decide.policies import StaticSlack
from slackwater.runtime.tune.predict.calibrated_predictor import CalibratedPredictor
from slackwater.runtime.tune.predict.features import OURS, PAPERS, examples
from slackwater.runtime.tune.predict.forecast import FloatArray
from slackwater.runtime.tune.predict.linear import LinearPredictor
from slackwater.runtime.tune.predict.predictors import Predictor

STAGE = "congestion"
SLACKS_S = (0.5, 2.0, 4.0, 6.0, 8.0)
RUN_S = 370
ORIGINS = (0.4, 0.5, 0.6)
"""Of each run, how much trains where it is split by time; three random halves beside them. The
mean of the three counts: which seconds fall on which side is worth more than most models are."""
RATE = 500
PAPER = {"gp": (10, 25, 2), "linear": (20, 26, 0.06), "isotonic": (19, 26, 0.2), "svr": (15, 25, 4)}
"""{model: NRMSE of latency, of slack-ready, in %; seconds of training}, [ssg] Table 1."""
TARGETS = ("latency", "slack-ready")
FORECASTS = {"latency": "wait forecast", "slack-ready": "slack-ready forecast"}
LEAST_SQUARES = 1e-3
"""A ridge that only keeps the equations solvable: the rival is plain linear regression."""


@dataclass(frozen=True)
class Samples:
    """Seconds of one or several runs.

    Attributes:
        features: {name of the set: shape (n, columns)}.
        targets: {"latency" | "slack-ready": shape (n,)}.
        share: shape (n,), how far on in its run, from 0 to 1.
    """

    features: Mapping[str, FloatArray]
    targets: Mapping[str, FloatArray]
    share: FloatArray


class Wandering:
    """A slack drawn anew every few seconds, between 0 and as much as the delays ever need."""

    name = "wandering"

    def __init__(self, step: Subject, *, seed: int) -> None:
        self._step, self._rng, self._left = step, np.random.default_rng(seed), 0

    def begin(self) -> Sequence[SetRelease]:
        """Draw the first."""
        return self.decide(0, {})

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        """Draw the next when it is time."""
        del second, samples
        self._left -= 1
        if self._left > 0:
            return []
        self._left = int(self._rng.integers(3, 9))
        slack_ns = int(self._rng.uniform(0, 8) * NS_PER_SECOND)
        return [SetRelease(self._step, ReleaseRule.slack(slack_ns), by=self.name)]


def run(options: Options) -> Result:
    """Simulate, train each model on about half of the seconds, and predict the others."""
    slacks_s = SLACKS_S[1::2] if options.quick else SLACKS_S
    run_s = 210 if options.quick else RUN_S
    wander_s = 350 if options.quick else RUN_S * len(SLACKS_S)
    rng = np.random.default_rng(options.seed)
    fixed = gathered(
        [
            simulated(_fixed(one), seconds=run_s, seed=options.seed + k)
            for k, one in enumerate(slacks_s)
        ]
    )
    wandering = gathered(
        [simulated(_wandering(options.seed), seconds=wander_s, seed=options.seed + 99)]
    )
    result = Result(
        f"{len(fixed.share):,} seconds of {len(slacks_s)} runs with slacks of "
        f"{', '.join(f'{one:g}' for one in slacks_s)} s, {len(wandering.share):,} of one run "
        "with a slack that wanders; NRMSE in % of the range, mean of three random halves, or of "
        "the first 40, 50 and 60 % of each run to train and the rest to test",
        ("runs", "split", "features", "model", "latency", "slack-ready", "training, s", "paper"),
    )
    scores: dict[tuple[str, str, str, str], dict[str, float]] = {}
    for runs, samples in (("fixed", fixed), ("wandering", wandering)):
        size = len(samples.share)
        shuffled = [rng.permutation(size) < size // 2 for _ in ORIGINS]
        early = [samples.share < origin for origin in ORIGINS]
        for split, trains in (("random", shuffled), ("chronological", early)):
            for features in samples.features:
                for model in MODELS:
                    each = [
                        scored(samples, features, model, is_train, seed=options.seed)
                        for is_train in trains
                    ]
                    score = {what: float(np.mean([one[what] for one in each])) for what in each[0]}
                    scores[runs, split, features, model] = score
                    is_table_1 = (runs, split) == ("fixed", "random")
                    printed = "{} / {} %, {} s".format(*PAPER[model]) if is_table_1 else ""
                    shown = (score[what] for what in (*TARGETS, "training"))
                    result.rows.append((runs, split, features, model, *shown, printed))
    result.figures = {", ".join(key): score for key, score in scores.items()}
    result.claims = claims(scores)
    result.notes = notes(scores)
    return result


def simulated(policy: MakePolicy, *, seconds: int, seed: int) -> list[StageSample]:
    """Return what the join did in every second while its sources went on."""
    plan = _plan(seconds, seed)
    simulation = Simulation(
        plan,
        egress=_discard,
        seed=seed,
        cost=CostModel(jitter=1.0),
        link=LinkModel(jitter_ns=2_000_000),
        policy=policy(plan),
    )
    simulation.run(until_ns=seconds * NS_PER_SECOND)
    return [sample for sample in simulation.samples if sample.stage == STAGE]


def gathered(runs: Sequence[Sequence[StageSample]]) -> Samples:
    """Return the samples of several runs, each with the second before it."""
    known = [examples(run) for run in runs]
    return Samples(
        {
            "Eq. 6": np.concatenate([one.papers() for one in known]),
            "ours": np.concatenate([one.ours() for one in known]),
        },
        {
            "latency": np.concatenate([one.wait_s for one in known]),
            "slack-ready": np.concatenate([one.slack_ready for one in known]),
        },
        np.concatenate([np.arange(len(one.second)) / len(one.second) for one in known]),
    )


def scored(
    samples: Samples, features: str, model: str, is_train: npt.NDArray[np.bool_], *, seed: int
) -> dict[str, float]:
    """Return {target: NRMSE in %} on the seconds not learned from, and the seconds of training.

    With our features every model has the same mean function, the forecast, and learns what that
    one leaves, as in the tuner; with the paper's there is none. And for each target how much of the
    squared error is that of the worst 1 % of the seconds.
    """
    x = samples.features[features]
    score: dict[str, float] = {}
    took_s = 0.0
    for target, y in samples.targets.items():
        own = MODELS[model](seed)
        if features != "ours" and model == "linear":
            own = LinearPredictor(ridge=LEAST_SQUARES)
        predictor: Predictor | CalibratedPredictor = own
        if features == "ours":
            predictor = CalibratedPredictor(own, forecast=of_forecast(target))
        began_s = time.perf_counter()
        predictor.fit(x[is_train], y[is_train])
        took_s += time.perf_counter() - began_s
        mean = np.maximum(predictor.predict(x[~is_train])[0], 0.0)
        squares = np.sort((y[~is_train] - mean) ** 2)
        score[target] = 100 * float(np.sqrt(np.mean(squares))) / float(np.ptp(y[~is_train]))
        score[f"{target}, worst 1 %"] = float(squares[-len(squares) // 100 :].sum() / squares.sum())
    return {**score, "training": took_s}


def of_forecast(target: str) -> int:
    """Return the column of our features that has the forecast of a target."""
    return OURS.index(FORECASTS[target])


Scores = Mapping[tuple[str, str, str, str], Mapping[str, float]]
"""{(runs, split, features, model): NRMSE of each target, seconds of training}."""


def claims(scores: Scores) -> list[Claim]:
    """Return what must hold of our features."""
    found = []
    for target, paper in zip(TARGETS, PAPER["gp"], strict=False):
        gp, rival = _best(scores, "fixed", "random", target)
        found.append(Claim(f"random split, {target}: NRMSE of gp, %", gp, "<=", paper))
        found.append(
            Claim(f"random split, {target}: gp / best rival, same mean", gp / rival, "<=", 1.0)
        )
        for runs in ("fixed", "wandering"):
            gp, rival = _best(scores, runs, "chronological", target)
            name = f"chronological split, {runs} slack, {target}: gp / best rival, same mean"
            found.append(Claim(name, gp / rival, "<=", 1.0))
    return found


def notes(scores: Scores) -> list[str]:
    """Return what a reader must know, and how the paper's own features do."""
    table_1 = {m: scores["fixed", "random", "Eq. 6", m] for m in MODELS}
    of = ", ".join(f"{m} {s['latency']:.1f} / {s['slack-ready']:.1f}" for m, s in table_1.items())
    worst = scores["fixed", "chronological", "ours", "gp"]["slack-ready, worst 1 %"]
    return [
        "with our features all models have the same mean function, the forecast of the gate, and "
        "learn what it leaves, as the tuner uses them; with those of Eq. 6 there is none",
        f"features of Eq. 6: {', '.join(PAPERS)}; ours: {', '.join(OURS)}; isotonic sees the "
        "slack alone",
        "latency: the longest wait of a row that left in the second or was still held at its end, "
        "with comm; every feature is known before that second begins",
        f"with the features of Eq. 6 alone, random split (latency / slack-ready, %): {of}; the "
        "runs replay the same minutes of a day, so a random split lets a model read minute and "
        "second off the neighbours; the chronological split does not",
        "simulated: jitter of costs 100 %, of links 2 ms, sources asked every 20 ms",
        f"chronological split, fixed slack, slack-ready: {worst:.0%} of the squared error of gp is "
        "that of the worst 1 % of the seconds, in which the skew passes the slack: they decide "
        "which model is first",
        "shape of the process, its margin and the number of splits were chosen while looking at "
        "seed 1: judge gp against its rivals by other seeds, where slack-ready may go either way",
    ]


def _best(scores: Scores, runs: str, split: str, target: str) -> tuple[float, float]:
    """Return the error of the Gaussian process, and the least of its rivals, on our features."""
    of = {model: scores[runs, split, "ours", model][target] for model in MODELS}
    return of.pop("gp"), min(of.values())


def _fixed(slack_s: float) -> MakePolicy:
    return lambda plan: StaticSlack(
        Paths.of(FlowGraph.of(plan)), ReleaseRule.slack(int(slack_s * NS_PER_SECOND))
    )


def _wandering(seed: int) -> MakePolicy:
    return lambda plan: Wandering(*FlowGraph.of(plan).tuned, seed=seed)


def _plan(seconds: int, seed: int) -> Plan:
    rng = np.random.default_rng(seed)
    rows = (seconds + 20) * RATE
    bus_ns = np.arange(rows) * (NS_PER_SECOND // RATE)
    loop_ns = bus_ns + 1_000_000
    areas = rng.integers(0, 200, (2, rows)).astype(np.int32)
    buses = pa.table({"ts": bus_ns, "arrival": zipf_delays(bus_ns, rng), "area": areas[0]})
    loops = pa.table({"ts": loop_ns, "arrival": loop_ns, "area": areas[1]})
    flow = sw.Dataflow("predictors", deadline="6s", keep="slack")
    bus, loop = source(flow, "buses", buses), source(flow, "loops", loops)
    is_late = sw.col("area") % 10 == 0
    bus.join(loop, on="area", within="5s", where=is_late, name=STAGE).sink(
        "jams", sw.callback_sink(_discard)
    )
    stages = plan_stages(flow.graph)
    placed = place(flow.name, stages, ["node-1"], deadline_ns=flow.deadline_ns)
    return replace(placed, limits=LIMITS)


def _discard(*ignored: object) -> None:
    """Nobody reads the results."""
