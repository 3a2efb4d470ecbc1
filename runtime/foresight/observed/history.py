"""Statistics of a flow from the samples of its earlier jobs (`Tuning(history=…)`).

```
jobs ─▶ the newest job of this version ─▶ costs, selectivities, lags  ─▶ in place of a sample
                                       └▶ arrivals, by time           ─▶ rates, by default
```

No flow runs, and no input is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.gates.recorded_times import times_recorded
from slackwater.runtime.foresight.observations import share_of, spans_of
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.observed.parts import key_rows_of_parts
from slackwater.runtime.foresight.observed_graph import observed_graph
from slackwater.runtime.foresight.recorded import (
    arrivals_recorded,
    observed_job,
    recorded_intervals,
)
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.whole_steps import history_by_step
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.order.k_slack import KSlack
from slackwater.runtime.order.reorder import SortedWithin
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.stage_versions import other_stages, stage_versions
from slackwater.runtime.plurals import count_of
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["KeptJob", "sample_of_jobs"]

LONG_ENOUGH = 1 / 3
"""Least length of a record, as a share of the longest one, to be chosen before older ones."""


@dataclass(frozen=True, kw_only=True)
class KeptJob:
    """Record of an earlier job, as it was read.

    Attributes:
        file: the name of its file.
        samples: seconds ascending.
        versions: {stage: a digest of what it did with a row}; empty: the job kept none.
        problem: reason why the file was not read; None if it was read.
    """

    file: str
    samples: Sequence[StageSample] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None


def sample_of_jobs(plan: Plan, jobs: Iterable[KeptJob], *, folder: str) -> FlowSample:
    """Return the sample of the newest job of this version of a flow.

    Args:
        plan: plan of the flow.
        jobs: jobs of the flow, the newest first; read once.
        folder: the folder of the history.

    Raises:
        SettingError: the flow has no job, no job of this version, or no job with rows and results.
    """
    now, problems, count = stage_versions(plan.stages), list[str](), 0
    known = []
    for job in jobs:
        count += 1
        if (why_not := job.problem or _why_not(now, job)) is None:
            known.append((job, _length_s(plan, job.samples)))
        else:
            problems.append(why_not)
    if not count:
        raise SettingError(
            f"the history in {folder!r} has no job of flow {plan.flow!r} yet; "
            + _advice(plan, "submit it once")
        )
    longest_s = max((length_s for _, length_s in known), default=0.0)
    # A job that was stopped at once shows little, and is used only without longer ones.
    for job, length_s in sorted(known, key=lambda each: each[1] < longest_s * LONG_ENOUGH):
        try:
            sample = _sample_of(plan, now, job.samples)
        except SettingError as problem:
            problems.append(f"file {job.file}: {problem}")
        else:
            which = f"the newest of {_jobs(count)} that fits, {length_s:g} s long"
            return replace(sample, origin=which)
    raise SettingError(
        f"the history in {folder!r} has {_jobs(count)} of flow {plan.flow!r}, and "
        f"none with statistics of it: {problems[0]}. " + _advice(plan, "Submit the flow once more")
    )


def _advice(plan: Plan, submit: str) -> str:
    """Return advice on how to get statistics."""
    if not plan.tuned:
        return (
            "jobs of it keep no samples, as it has no gate that a deadline tunes: predict it from "
            "a sample (rates=, sample=1_000)"
        )
    return (
        f"{submit} with tuning=sw.Tuning(history=…), or predict it from a sample (sample=1_000). "
        "Where a job's tuner is on another host, that keeps its samples: use a folder of both"
    )


def _why_not(now: Mapping[str, str], job: KeptJob) -> str | None:
    """Return why a job is of another version of the flow; None if not.

    Args:
        now: the versions of the flow's stages.
        job: job that was kept.
    """
    if not job.versions:
        return f"file {job.file} is of a release that kept no statistics, or cut off"
    if odd := other_stages(now, job.versions):
        return (
            f"statistics in file {job.file} are from another version of the flow: they differ in "
            f"{', '.join(odd)}"
        )
    if len({sample.interval_ns for sample in job.samples}) > 1:
        return f"file {job.file} has intervals of more than one length"
    return None


def _length_s(plan: Plan, samples: Sequence[StageSample]) -> float:
    sources = [stage.name for stage in plan.stages if not stage.inputs]
    interval_ns = samples[0].interval_ns if samples else 0
    return len(recorded_intervals(samples, sources)) * interval_ns / NS_PER_SECOND


def _sample_of(plan: Plan, now: Mapping[str, str], samples: Sequence[StageSample]) -> FlowSample:
    """Return the sample of a flow from a job of this version.

    Args:
        plan: plan of the flow.
        now: the versions of its stages.
        samples: samples of the job.

    Raises:
        SettingError: the samples do not show enough.
    """
    whole = {stage.name: stage.whole for stage in plan.stages}
    inputs: dict[str, tuple[str, ...]] = {}
    for stage in plan.stages:
        feeders = [whole[channel.source] for channel in stage.inputs]
        inputs[stage.whole] = tuple(dict.fromkeys((*inputs.get(stage.whole, ()), *feeders)))
    spans = {stage.whole: spans_of(stage) for stage in plan.stages}
    divisible = {
        stage.subject.step
        for stage in plan.stages
        if not stage.inputs or (stage.step.traits.owns_keys and not stage.shares_gate)
    }
    parts = [s for s in samples if s.subject.step in divisible and s.subject.part is not None]
    key_rows = key_rows_of_parts(parts)
    if parts:
        others = [s for s in samples if s.subject.step not in divisible or s.subject.part is None]
        samples = sorted([*others, *history_by_step(parts)], key=attrgetter("second"))
    stages = observed_job(samples, inputs, spans)
    specs = {step.name: step.source for step in plan.sources}
    interval_s = samples[0].interval_ns / NS_PER_SECOND
    arrived = arrivals_recorded(samples, list(specs), interval_s=interval_s)
    times, origin_ns = times_recorded(
        samples,
        arrived,
        speeds={name: spec.speed for name, spec in specs.items()},
        waits_s={name: _waits_ns(spec) / NS_PER_SECOND for name, spec in specs.items()},
    )
    graph = observed_graph(
        stages,
        slice_s=plan.limits.slice_ns / NS_PER_SECOND,
        times_s={name: rate.stretched(times[name].pace) for name, rate in arrived.items()},
    )
    return FlowSample(
        graph,
        {stage.name: stage.rows_in for stage in stages if not stage.inputs},
        0.0,
        shares={stage.name: share_of(stage, stages) for stage in stages},
        versions=now,
        times=times,
        origin_ns=origin_ns,
        recorded=arrived,
        key_rows=key_rows,
    )


def _waits_ns(spec: SourceSpec) -> int:
    """Return the wait of rows for their order; 0 if the source learns it."""
    if isinstance(spec.reorder, SortedWithin):
        return spec.reorder.disorder_ns
    return spec.reorder.slack_ns if isinstance(spec.reorder, KSlack) else 0


def _jobs(count: int) -> str:
    return count_of(count, "job")
