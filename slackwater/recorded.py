"""Statistics of a flow from what earlier jobs of it have kept (`Tuning(history=…)`).

```
folder ─▶ the newest job of this version ─▶ costs, selectivities, lags  ─▶ as if a sample had them
                                         └▶ what arrived, by time       ─▶ rates, unless others are
```

Nothing is run, and no input is opened.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from slackwater.actors.tuning.job_records import JobSamples, read_record
from slackwater.actors.tuning.sample_history import in_order, job_files
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SettingError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.foresight.gates.recorded_times import times_recorded
from slackwater.runtime.foresight.rates import Rate, RecordedRate
from slackwater.runtime.foresight.recorded import (
    arrivals_recorded,
    graph_recorded,
    intervals_recorded,
    stages_recorded,
)
from slackwater.runtime.foresight.sampled import spans_of
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND, Duration, duration_ns
from slackwater.runtime.order.k_slack import KSlack
from slackwater.runtime.order.reorder import SortedWithin
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.stage_versions import other_stages, stage_versions
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.prepare import prepare
from slackwater.runtime.simulate import CostModel
from slackwater.runtime.sources.spec import SourceSpec
from slackwater.sampling import HERE, FlowSample, as_sample

__all__ = ["History", "ahead_of", "sample_of_history", "statistics"]

History = str | os.PathLike[str]
MOST_AHEAD = 10_000
"""Subintervals that a record is divided into where its user says nothing: some seconds of work."""
LONG_ENOUGH = 1 / 3
"""Of the longest job's record: a newer one that is shorter does not stand over it."""
LEAST_WIDTH_S = 0.1
"""Arrivals are known to no less of the usual interval; a burst in a longer one is none."""


def statistics(
    flow: Dataflow,
    rates: Mapping[str, Rate] | Rate | None,
    *,
    sample: int | FlowSample,
    history: History | None,
    limits: Limits | None,
    cost: CostModel | None = None,
) -> tuple[FlowSample, Mapping[str, Rate] | Rate]:
    """Return what a flow is predicted from: what its rows cost, and how many come.

    Args:
        flow: as it will be submitted.
        rates: those that were given; None: those of the history.
        sample: as of `FlowHost.predict`, where there is no history.
        history: the folder of earlier jobs; None: a sample says what rows cost.
        limits: those it will be submitted with.
        cost: what work costs where it is to run; None: as it is measured here.

    Raises:
        SettingError: there are no rates; or as of `as_sample`, or `sample_of_history`.
    """
    if history is not None:
        sample = sample_of_history(flow, history, limits=limits)
    if rates is None and not (isinstance(sample, FlowSample) and sample.recorded):
        raise SettingError(
            f"flow {flow.name!r} has no rates: give rates=, events a second of each source or of "
            "all together, or history=, a folder that earlier jobs of it have kept samples in"
        )
    sample = as_sample(sample, flow, limits=limits, cost=cost)
    return sample, sample.recorded if rates is None else rates


def sample_of_history(
    flow: Dataflow, folder: History, *, limits: Limits | None = None
) -> FlowSample:
    """Return what the newest job of this version of a flow has shown.

    Args:
        flow: as it will be submitted.
        folder: as of `Tuning(history=…)`.
        limits: those it will be submitted with.

    Raises:
        SettingError: there is no job of this flow; or none of this version of it; or none that saw
            rows and results of it.
        FlowError: the flow is wrong.
    """
    plan = prepare(flow, [HERE], limits=limits)
    try:
        files = job_files(Path(folder), flow.name)
    except OSError as problem:
        raise SettingError(
            f"the history in {os.fspath(folder)!r} cannot be read: {problem}"
        ) from problem
    if not files:
        raise SettingError(
            f"the history in {os.fspath(folder)!r} has no job of flow {flow.name!r} yet; "
            + _advice(plan, "submit it once")
        )
    now, problems = stage_versions(plan.stages), list[str]()
    known = []
    for path in files:
        try:
            samples = _samples_of(now, path)
        except SettingError as problem:
            problems.append(str(problem))
        else:
            known.append((path, samples, _length_s(plan, samples)))
    longest_s = max((length_s for *_, length_s in known), default=0.0)
    # A job that was stopped at once shows little; where only such are left they have to do.
    for path, samples, length_s in sorted(known, key=lambda one: one[2] < longest_s * LONG_ENOUGH):
        try:
            found = _sample_of(plan, now, samples)
        except SettingError as problem:
            problems.append(f"file {path.name}: {problem}")
        else:
            which = f"the newest of {_jobs(len(files))} that fits, {length_s:g} s long"
            return replace(found, origin=which)
    raise SettingError(
        f"the history in {os.fspath(folder)!r} has {_jobs(len(files))} of flow {flow.name!r}, and "
        f"none with statistics of it: {problems[0]}. " + _advice(plan, "Submit the flow once more")
    )


def ahead_of(
    rates: Mapping[str, Rate] | Rate, horizon: Duration | None, width: Duration | None
) -> tuple[Duration, Duration]:
    """Return how long to look ahead, and in subintervals of which length.

    60 s in steps of 100 ms; of recorded rates the whole record, in longer steps where there would
    be more than `MOST_AHEAD`.
    """
    each = rates.values() if isinstance(rates, Mapping) else [rates]
    longest_s = max((one.length_s for one in each if isinstance(one, RecordedRate)), default=None)
    if horizon is None:
        horizon = 60.0 if longest_s is None else longest_s
    if width is None:
        horizon_s = duration_ns(horizon, what="horizon") / NS_PER_SECOND
        each_s = 0.0 if longest_s is None else horizon_s / MOST_AHEAD
        width = max(LEAST_WIDTH_S, each_s)
    return horizon, width


def _advice(plan: Plan, submit: str) -> str:
    """Return where statistics come from."""
    if not plan.tuned:
        return (
            "jobs of it keep no samples, as it has no gate that a deadline tunes: predict it from "
            "a sample (rates=, sample=1_000)"
        )
    return (
        f"{submit} with tuning=sw.Tuning(history=…), or predict it from a sample (sample=1_000). "
        "Where a job's tuner is on another host, that keeps its samples: use a folder of both"
    )


def _samples_of(now: Mapping[str, str], path: Path) -> list[StageSample]:
    """Return what a job of this version of a flow has kept, seconds ascending.

    Args:
        now: the versions of the flow's stages.
        path: of the job's file.

    Raises:
        SettingError: the file cannot be read, or it is of another version.
    """
    record: JobSamples = read_record(path)
    if not record.versions:
        raise SettingError(f"file {path.name} is of a release that kept no statistics, or cut off")
    if odd := other_stages(now, record.versions):
        raise SettingError(
            f"statistics in file {path.name} are from another version of the flow: they differ in "
            f"{', '.join(odd)}"
        )
    if len({one.interval_ns for one in record.samples}) > 1:
        raise SettingError(f"file {path.name} has intervals of more than one length")
    return in_order(record.samples)


def _length_s(plan: Plan, samples: Sequence[StageSample]) -> float:
    sources = [stage.name for stage in plan.stages if not stage.inputs]
    interval_ns = samples[0].interval_ns if samples else 0
    return intervals_recorded(samples, sources) * interval_ns / NS_PER_SECOND


def _sample_of(plan: Plan, now: Mapping[str, str], samples: list[StageSample]) -> FlowSample:
    """Return what a job has shown of this version of a flow.

    Args:
        plan: of the flow.
        now: the versions of its stages.
        samples: what the job has kept.

    Raises:
        SettingError: it does not show what is needed.
    """
    inputs = {
        stage.name: tuple(dict.fromkeys(channel.source for channel in stage.inputs))
        for stage in plan.stages
    }
    stages = stages_recorded(samples, inputs)
    specs = {one.name: one.step.source for one in plan.stages if isinstance(one.step, SourceStep)}
    interval_s = samples[0].interval_ns / NS_PER_SECOND
    arrived = arrivals_recorded(samples, list(specs), interval_s=interval_s)
    times, origin_ns = times_recorded(
        samples,
        arrived,
        speeds={name: spec.speed for name, spec in specs.items()},
        waits_s={name: _waits_ns(spec) / NS_PER_SECOND for name, spec in specs.items()},
    )
    graph, shares = graph_recorded(
        stages,
        slice_s=plan.limits.slice_ns / NS_PER_SECOND,
        spans={stage.name: spans_of(stage) for stage in plan.stages},
        times_s={name: rate.stretched(times[name].pace) for name, rate in arrived.items()},
    )
    return FlowSample(
        graph,
        {stage.name: stage.rows_in for stage in stages if not stage.inputs},
        0.0,
        shares=shares,
        versions=now,
        times=times,
        origin_ns=origin_ns,
        recorded=arrived,
    )


def _waits_ns(spec: SourceSpec) -> int:
    """Return how long rows wait for their order; 0 without a record."""
    if isinstance(spec.reorder, SortedWithin):
        return spec.reorder.disorder_ns
    return spec.reorder.slack_ns if isinstance(spec.reorder, KSlack) else 0


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"
