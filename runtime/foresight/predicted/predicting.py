"""Making of predictions: of a placed plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.observed.parts import divided, part_shares
from slackwater.runtime.foresight.predicted.outlook import Outlook, estimate_placed
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.foresight.predicted.what_if import network_of, with_costs
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.foresight.rates import (
    EndedTimes,
    OwnTimes,
    Rate,
    RecordedRate,
    is_trace,
    series_of,
)
from slackwater.runtime.foresight.shared_cores import SharedCores, with_shared_cores
from slackwater.runtime.model import NS_PER_SECOND, Duration, duration_ns
from slackwater.runtime.placement.key_shares import balanced
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slots import SlotPlace, places_by_name
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import sources_among
from slackwater.runtime.shown import shown
from slackwater.runtime.simulate import LinkModel

__all__ = [
    "ahead_of",
    "on_machines",
    "predict",
    "series_ahead",
    "speed_of",
    "subintervals",
]

MOST_SUBINTERVALS = 100_000
MOST_NUMBERS = 20_000
"""Most rows of a record whose arrivals are used, evenly spaced."""
MOST_AHEAD = 10_000
"""Most subintervals of a record by default: some seconds of work."""
MOST_WORK, FEWEST_AHEAD = 120_000, 40
"""Most subintervals × channels by default, some seconds of work; but at least so many of them."""
LEAST_WIDTH_S = 0.1
"""Least length of a subinterval by default: a record of the usual interval is no finer."""


def predict(  # noqa: PLR0913 - each by name
    plan: Plan,
    sample: FlowSample,
    rates: Mapping[str, Rate] | Rate,
    *,
    slots: Sequence[SlotPlace | str] | None = None,
    horizon: Duration = "60s",
    width: Duration = "100ms",
    link: LinkModel | None = None,
    machines: Sequence[SharedCores] = (),
    speed: float | None = None,
    seed: int = 0,
    costs: Mapping[str, Duration] | None = None,
) -> Prediction:
    """Return the predicted latency of a plan, without a run.

    Args:
        plan: the plan, every stage in a slot. The sample says how many key groups replicas own.
        sample: a sample of the same flow.
        rates: {source: events a second, a model of them, or a trace}, or one for all sources.
        slots: all slots; None if they are those of the plan.
        horizon: length of the time ahead.
        width: length of a subinterval, w of [mace].
        link: the links between slots; None if messages take no time.
        machines: machines that may have fewer cores than slots.
        speed: speed of event time by the clock: 1 for a stream that becomes denser as rates grow.
            None if it is that of the flow's sources. Where these have several paces, a stream is as
            dense as its sample, and only arrives faster.
        seed: seed of models of rates.
        costs: {stage, or step: time of its row on a core} in place of the sample's.

    Raises:
        SettingError: a source has no rate, or the horizon has no subinterval, or too many.
    """
    width_s, d = subintervals(horizon, width)
    plan = balanced(plan, sample.key_rows)
    odd = sample.differs_from(plan)
    if odd:
        raise SettingError(
            f"the sample is of another version of flow {plan.flow!r}: they differ in "
            f"{', '.join(odd)}; take a new sample, with the same limits"
        )
    speed = speed_of(stage.step for stage in plan.stages) if speed is None else speed
    whole, sample = sample, divided(sample, plan)
    if costs:
        sample = with_costs(sample, costs, plan.stages)
    graph = sample.graph.at_speed(speed)
    arrivals = series_ahead(whole, rates, d=d, width_s=width_s, seed=seed, speed=speed)
    shares = part_shares(plan, whole)
    series = {
        stage.name: arrivals[stage.whole] * shares[stage.name]
        for stage in plan.stages
        if not stage.inputs
    }
    outlook = Outlook(
        series=series,
        width_s=width_s,
        speed=speed,
        network=network_of(link or LinkModel(delay_ns=0), sample),
        places={**places_by_name(slots or ()), **plan.places},
        machines=tuple(machines),
    )
    placed = estimate_placed(plan, sample, graph, outlook)
    busy = placed.work.load_s.sum(axis=1) / (d * width_s)
    made = Prediction(
        plan=plan,
        sample=sample,
        graph=graph,
        outlook=outlook,
        rates={name: float(counts.sum() / (d * width_s)) for name, counts in arrivals.items()},
        estimate=placed.latency,
        cores_by=dict(zip(graph.names, map(float, busy), strict=True)),
        work=placed.work,
        gates=placed.gates,
        alone=placed.latency,
        is_trace=all(map(is_trace, rates.values() if isinstance(rates, Mapping) else [rates])),
    )
    return on_machines(made, machines)


def series_ahead(
    sample: FlowSample,
    rates: Mapping[str, Rate] | Rate,
    *,
    d: int,
    width_s: float,
    seed: int,
    speed: float | None,
) -> dict[str, FloatArray]:
    """Return {source: shape (d,), rows of each subinterval}.

    A number is spread over time like the rows of the sample.

    Args:
        sample: a sample of the flow.
        rates: rates of the sources, as for `predict`.
        d: number of the subintervals.
        width_s: length of each subinterval.
        seed: seed of models of rates.
        speed: speed of event time by the clock; None if arrivals are like the sample's, scaled by
            the rates.
    """
    total = sum(sample.rows.values())
    shares = {name: count / total if total else 0.0 for name, count in sample.rows.items()}
    rate_of = rates if isinstance(rates, Mapping) else dict.fromkeys(shares, rates)
    own: dict[str, OwnTimes | EndedTimes] = {}
    for name, times in sample.times.items():
        rate = rate_of.get(name)
        if isinstance(rates, (int, float)):
            rate = float(rates) * shares.get(name, 0.0)
        came_s = times.stimulus_s
        if (recorded := sample.recorded.get(name)) is not None:
            numbers = np.linspace(0, recorded.events - 1, min(recorded.events, MOST_NUMBERS))
            came_s = recorded.nth_s(numbers) if recorded.events else came_s
        came = times.rate if recorded is None else recorded.mean
        is_number = isinstance(rate, (int, float))
        rows = np.array([float(rate) * d * width_s if isinstance(rate, (int, float)) else np.inf])
        is_all = is_number and recorded is None and len(came_s) > 0 and times.ends_within(rows)
        if is_all and speed is not None:
            own[name] = EndedTimes(np.sort(came_s) * (times.pace / speed))
        elif (
            isinstance(rate, (int, float)) and 0 < rate < np.inf and came > 0 and np.ptp(came_s) > 0
        ):
            faster = rate / came if speed is None else speed / times.pace
            own[name] = OwnTimes(np.sort(came_s) / faster)
    return series_of(rates, shares, d=d, width_s=width_s, seed=seed, own=own)


def on_machines(made: Prediction, machines: Sequence[SharedCores]) -> Prediction:
    """Return a prediction for machines that may have fewer cores than slots."""
    estimate = with_shared_cores(made.alone, made.graph, made.work, made.plan.slots, machines)
    outlook = replace(made.outlook, machines=tuple(machines))
    return replace(made, estimate=estimate, outlook=outlook)


def ahead_of(
    rates: Mapping[str, Rate] | Rate,
    horizon: Duration | None,
    width: Duration | None,
    *,
    channels: int = 1,
) -> tuple[Duration, Duration]:
    """Return the horizon, and the length of a subinterval, with their defaults.

    These are 60 s in steps of 100 ms; for recorded rates the whole record. Steps are longer if
    there would be more than `MOST_AHEAD`, or too many for so many channels (`MOST_WORK`).

    Args:
        rates: rates of the sources, as for `predict`.
        horizon: length of the time ahead; the default if None.
        width: length of a subinterval; the default if None.
        channels: number of channels of the plan.
    """
    each = rates.values() if isinstance(rates, Mapping) else [rates]
    longest_s = max(
        (rate.length_s for rate in each if isinstance(rate, RecordedRate)), default=None
    )
    if horizon is None:
        horizon = 60.0 if longest_s is None else longest_s
    if width is None:
        horizon_s = duration_ns(horizon, what="horizon") / NS_PER_SECOND
        each_s = 0.0 if longest_s is None else horizon_s / MOST_AHEAD
        fewest = max(MOST_WORK // channels, FEWEST_AHEAD)
        is_many = horizon_s / LEAST_WIDTH_S * channels > MOST_WORK and longest_s is None
        width = max(LEAST_WIDTH_S, each_s, horizon_s / fewest if is_many else 0.0)
    return horizon, width


def subintervals(horizon: Duration, width: Duration) -> tuple[float, int]:
    """Return the length of a subinterval, seconds, and the number of them.

    Raises:
        SettingError: there are none, or too many.
    """
    width_s = duration_ns(width, what="width", positive=True) / NS_PER_SECOND
    d = round(duration_ns(horizon, what="horizon") / NS_PER_SECOND / width_s)
    if not 1 <= d <= MOST_SUBINTERVALS:
        raise SettingError(
            f"horizon={shown(horizon)} is {d} subintervals of width={shown(width)}; take 1 to "
            f"{MOST_SUBINTERVALS:,} of them"
        )
    return width_s, d


def speed_of(steps: Iterable[Step]) -> float | None:
    """Return the speed of event time by the clock; None if not given."""
    speeds = {step.source.speed for step in sources_among(steps)}
    return speeds.pop() if len(speeds) == 1 else None
