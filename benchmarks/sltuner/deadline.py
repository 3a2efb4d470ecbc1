"""Running one flow with a deadline under many policies in the simulator, and judging them.

By intervals of a second, as [ssg] Fig. 12 and 13 are drawn: latency is Eq. 2 over the largest
latency_op (Eq. 1) of each stage in that second, from second 70 on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

import slackwater as sw
from benchmarks.frame import Claim, Result, check
from benchmarks.side_by_side import side_by_side
from benchmarks.sltuner.floors import Floor
from benchmarks.sltuner.rival_policies import RIVALS
from benchmarks.sltuner.seconds import by_second
from slackwater.runtime.config import Limits, Tuning
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND, Batch
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.simulate import CostModel, LinkModel, Simulation
from slackwater.runtime.tune import Paths, SlackPolicy, make_policy, measured_ns
from slackwater.runtime.tune.decide.policies import Calibration

FIRST_SECOND = 70
OVER_AT_MOST = 0.01
TIE = 0.005
"""Two policies tie whose slack-ready rows differ by at most this share. What both keep back is
2.5 % of the deadline, and on `sltuner-drift` whether that is of event time or of the clock is worth
0.1 %: so little says nothing of who decides better."""
OURS = "sltuner"
HEADER = ["policy", "over", "largest, s", "slack-ready", "late, used", "late, lost", "detected"]
"""As `Outcome.figures`, behind the policy."""
CALIBRATION_SEED = 1_000
"""Streams of a seed from here on are those of calibration runs."""
LIMITS = Limits(source_gap_ns=20_000_000)
"""Sources look every 20 ms: a deadline of seconds needs no more, and the simulation is quicker."""

Floats = npt.NDArray[np.float64]
MakePolicy = Callable[[Plan], SlackPolicy]


@dataclass(frozen=True)
class Experiment:
    """What is run.

    Attributes:
        name: of the benchmark.
        build: makes the flow, its sinks given; the seed is that of its streams.
        seconds: of virtual time.
        slots: of the simulator.
        placement: {stage: slot}.
        cost, limits: of the simulator.
        first_second: from which on a run is judged.
    """

    name: str
    build: Callable[[int, sw.connectors.Output], sw.Dataflow]
    seconds: int
    slots: Sequence[str]
    placement: Mapping[str, str]
    cost: CostModel = field(default_factory=CostModel)
    limits: Limits = LIMITS
    first_second: int = FIRST_SECOND

    def plan(self, seed: int) -> Plan:
        """Return the plan over the streams of a seed."""
        flow = self.build(seed, sw.callback_sink(_ignore))
        placed = place(
            flow.name,
            plan_stages(flow.graph),
            self.slots,
            placement=self.placement,
            deadline_ns=flow.deadline_ns,
        )
        return replace(placed, limits=self.limits)


@dataclass(frozen=True)
class Outcome:
    """What a policy made of the run; arrays by second, shape (seconds,).

    Attributes:
        policy: its name.
        latency_s: [ssg] Eq. 2; nan where nothing was worked off.
        slack_s: {gate: the slack in the second, else the hold}; nan for ready-only.
        slack_ready: over all gates, Eq. 5.
        detected: results that left.
        events: that entered.
        late: rows that came behind what had been released, and of them dropped.
        samples: all of them.
    """

    policy: str
    deadline_s: float
    first_second: int
    latency_s: Floats
    slack_s: Mapping[str, Floats]
    slack_ready: Floats
    detected: Floats
    events: int
    late: int
    late_dropped: int
    samples: Sequence[StageSample]

    @property
    def over(self) -> float:
        """Share of the judged intervals, of those in which anything left, over the deadline."""
        judged = self.latency_s[self.first_second :]
        return float(np.mean(judged[~np.isnan(judged)] > self.deadline_s))

    @property
    def most_s(self) -> float:
        """The largest latency in a judged interval."""
        return float(np.nanmax(self.latency_s[self.first_second :]))

    @property
    def slack_ready_rows(self) -> int:
        """Slack-ready rows in the judged intervals."""
        return int(self.slack_ready[self.first_second :].sum())

    @property
    def detected_rows(self) -> int:
        """Results in the whole run: who waits longer only moves them to later intervals."""
        return int(self.detected.sum())

    def figures(self) -> dict[str, float]:
        """Return what the table shows."""
        return {
            "over": self.over,
            "most_s": self.most_s,
            "slack_ready": self.slack_ready_rows,
            "late": self.late,
            "late_dropped": self.late_dropped,
            "detected": self.detected_rows,
            "events": self.events,
        }

    @property
    def keeps(self) -> bool:
        """Whether it keeps the deadline, but for 1 % of the intervals."""
        return self.over <= OVER_AT_MOST


def run(experiment: Experiment, policy: MakePolicy, *, seed: int) -> Outcome:
    """Run the flow once in virtual time."""
    plan = experiment.plan(seed)
    paths = Paths.of(FlowGraph.of(plan))
    detected = np.zeros(experiment.seconds + 1)
    made = policy(plan)

    def egress(stage: str, batch: Batch | None, is_end: bool) -> None:
        del stage, is_end
        if batch is not None:
            second = min(simulation.now_ns // NS_PER_SECOND, experiment.seconds)
            detected[second] += len(batch)

    simulation = Simulation(
        plan,
        egress=egress,
        seed=seed,
        cost=experiment.cost,
        link=LinkModel(),
        policy=made,
    )
    report = simulation.run()
    check(report.ledger.is_balanced, f"{made.name}: the ledger does not balance: {report.ledger}")
    seconds = by_second(simulation.samples)
    size = experiment.seconds
    latency, slack_ready = np.full(size, np.nan), np.zeros(size)
    gates = [gate.name for gate in paths.tuned]
    steps = {stage.name: stage.subject.whole.name for stage in plan.stages}
    slack = {gate: np.full(size, np.nan) for gate in gates}
    for second, samples in seconds.items():
        if second >= size:
            continue
        worked = any(one.rows for one in samples.values())
        took_ns = paths.latency_ns(measured_ns(samples))
        latency[second] = took_ns / NS_PER_SECOND if worked else np.nan
        slack_ready[second] = sum(one.slack_ready for one in samples.values())
    for second, one in simulation.settings:  # what is not set anew stays
        rule = one.rule
        wait_ns = rule.hold_ns if rule.lead_ns is None else rule.lead_ns
        slack[one.subject.name][second:] = np.nan if wait_ns is None else wait_ns / NS_PER_SECOND
    assert plan.deadline_ns is not None, "an experiment has a deadline"
    return Outcome(
        made.name,
        plan.deadline_ns / NS_PER_SECOND,
        experiment.first_second,
        latency,
        slack,
        slack_ready,
        detected[:size],
        report.ledger.entered,
        sum(stage.late for stage in report.stages if steps[stage.name] in gates),
        sum(stage.late_dropped for stage in report.stages if steps[stage.name] in gates),
        simulation.samples,
    )


def calibrated(experiment: Experiment, *, seed: int) -> list[StageSample]:
    """Return the samples of a calibration run over other streams, drawn alike."""

    def policy(plan: Plan) -> SlackPolicy:
        assert plan.deadline_ns is not None, "an experiment has a deadline"
        return Calibration(Paths.of(FlowGraph.of(plan)), most_ns=plan.deadline_ns, seed=seed)

    return list(run(experiment, policy, seed=seed + CALIBRATION_SEED).samples)


def judge(
    result: Result,
    outcomes: Sequence[Outcome],
    *,
    floor: Floor | None = None,
    breaking: Sequence[str] = (),
    what: str = "",
    beats_rivals: bool = True,
) -> None:
    """Fill in table, figures and claims of one experiment.

    Args:
        result: to be filled.
        outcomes: one for each policy; the claims are about ours.
        floor: floor of the run; None if it is not known.
        breaking: policies that must break the deadline, or the test is none.
        what: which of several experiments in one result.
        beats_rivals: claim to have fewer; it may need the full run.
    """
    of = f"{what}, " if what else ""
    by_name = {one.policy: one for one in outcomes}
    ours = by_name[OURS]
    for one in outcomes:
        figures = one.figures()
        result.rows.append([f"{of}{one.policy}", f"{one.over:.1%}", *list(figures.values())[1:-1]])
        result.figures[f"{of}{one.policy}"] = figures
    rivals = {o.policy: o for o in outcomes if o.policy != OURS}
    kept = [one for one in rivals.values() if one.keeps]
    best = min(kept, key=lambda one: one.slack_ready_rows) if kept else None
    result.claims.append(
        Claim(f"{of}share of seconds over the deadline", ours.over, "<=", OVER_AT_MOST)
    )
    if floor is not None:
        result.claims += _near_the_floor(ours, floor, of)
    if best is not None:
        result.notes.append(_compared(ours, best, of))
    if best is not None and beats_rivals:
        result.claims.append(
            Claim(
                f"{of}slack-ready rows: fewer than every rival that keeps the deadline",
                ours.slack_ready_rows,
                "<=",
                best.slack_ready_rows - 1,
            )
        )
    result.claims += [
        Claim(f"{of}{name} breaks it: share of seconds over", rivals[name].over, ">=", 0.0101)
        for name in breaking
    ]


def _near_the_floor(ours: Outcome, floor: Floor, of: str) -> list[Claim]:
    return [
        Claim(
            f"{of}slack-ready rows / (1.25 clairvoyant + 1 % of the events)",
            ours.slack_ready_rows / floor.allowed(ours.events),
            "<=",
            1.0,
        ),
        Claim(
            f"{of}detected events / clairvoyant", ours.detected_rows / floor.detected, ">=", 0.95
        ),
    ]


def _compared(ours: Outcome, best: Outcome, of: str) -> str:
    """Say who has fewer slack-ready rows, or that it is a tie; claims hold by their own words."""
    rows, other = ours.slack_ready_rows, best.slack_ready_rows
    if abs(rows - other) <= TIE * max(other, 1):
        verdict = f"a tie, within {TIE:.1%}"
    else:
        verdict = f"{abs(rows / max(other, 1) - 1):.1%} {'fewer' if rows < other else 'more'}"
    return (
        f"{of}ours has {rows:,} slack-ready rows, and {best.policy}, the best rival that keeps the "
        f"deadline, {other:,}: {verdict}"
    )


def run_all(experiment: Experiment, *, seed: int, rivals: Sequence[str]) -> list[Outcome]:
    """Return the outcomes of ours, calibrated, and of rivals by their names.

    Each in virtual time, so they share the machine: one process for each core.
    """

    def ours() -> Outcome:
        samples = calibrated(experiment, seed=seed)
        return run(experiment, named(OURS, history=samples), seed=seed)

    def of(rival: str) -> Callable[[], Outcome]:
        return lambda: run(experiment, named(rival), seed=seed)

    return side_by_side([ours, *map(of, rivals)], what="runs")


def named(policy: str, *, history: Sequence[StageSample] = ()) -> MakePolicy:
    """Return what makes a policy by its name, of a rival or as in `Tuning.policy`.

    Args:
        policy: its name.
        history: samples of earlier runs.
    """
    tuning = Tuning(policy=RIVALS.get(policy, policy))

    def make(plan: Plan) -> SlackPolicy:
        made = make_policy(FlowGraph.of(plan), tuning, history=history)
        assert made is not None, "an experiment has a gate to tune"
        return made

    return make


def _ignore(batch: object) -> None:
    del batch
