"""Statistics of a flow: sampled in this process, or read from a history.

Here are the clocks and the files; `slackwater.runtime.foresight.observed` has all else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from slackwater.actors.kernel.occupied import OccupiedClock
from slackwater.actors.tuning.job_records import read_record
from slackwater.actors.tuning.sample_history import in_order, job_files
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SettingError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.observed.history import KeptJob, sample_of_jobs
from slackwater.runtime.foresight.observed.parts import as_sampled
from slackwater.runtime.foresight.observed.sampling import HERE, Clocks, take_sample
from slackwater.runtime.foresight.rates import Rate
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.simulate import CostModel

__all__ = ["History", "sample_flow", "sample_of_history", "statistics"]

History = str | os.PathLike[str]


def sample_flow(
    flow: Dataflow,
    *,
    rows: int = 1_000,
    limits: Limits | None = None,
    clock_ns: Callable[[], int] | None = None,
    cost: CostModel | None = None,
) -> FlowSample:
    """Run some rows of each source through the flow, and measure.

    Where a stage sheds, twice: with nothing dropped, and with all, which is what dropping saves.

    Args:
        flow: flow as it will be submitted.
        rows: number of rows of each source on average, >= 1: in stretches of the same event time,
            evenly over the first 100 times as many; the first ones of a flow with numbered sources,
            or one that looks back for longer than so many rows, or where only these give a sink
            any.
        limits: limits that it will be submitted with.
        clock_ns: clock by which slices are timed; if omitted, how long they occupy this thread: its
            CPU, and the time that it waits by itself.
        cost: model of what work costs, in place of a clock, as in a simulation.

    Raises:
        SettingError: rows < 1, a source whose input is live and cannot be read twice, or a sample
            without rows or results.
        SlackwaterError: what the flow raised.
    """
    with closing(OccupiedClock()) as occupied_ns:
        clocks = Clocks(
            work_ns=clock_ns or occupied_ns,
            now_s=time.monotonic,
            is_machine=clock_ns is None,
        )
        return take_sample(flow, rows=rows, clocks=clocks, limits=limits, cost=cost)


def sample_of_history(
    flow: Dataflow, folder: History, *, limits: Limits | None = None
) -> FlowSample:
    """Return what the newest job of this version of a flow has shown.

    Args:
        flow: flow as it will be submitted.
        folder: folder as of `Tuning(history=…)`.
        limits: limits that it will be submitted with.

    Raises:
        SettingError: there is no job of this flow; or none of this version of it; or none that saw
            rows and results of it.
        FlowError: the flow is wrong.
    """
    plan = prepare(as_sampled(flow), [HERE], limits=limits)
    try:
        files = job_files(Path(folder), flow.name)
    except OSError as problem:
        raise SettingError(
            f"the history in {os.fspath(folder)!r} cannot be read: {problem}"
        ) from problem
    return sample_of_jobs(plan, map(_job_of, files), folder=os.fspath(folder))


def _job_of(path: Path) -> KeptJob:
    """Return what a job has left in its file, or why that is not known."""
    try:
        record = read_record(path)
    except SettingError as problem:
        return KeptJob(file=path.name, problem=str(problem))
    return KeptJob(file=path.name, samples=in_order(record.samples), versions=record.versions)


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
        flow: flow as it will be submitted.
        rates: rates that were given; those of the history if None.
        sample: sample as of `FlowHost.predict`, where there is no history.
        history: the folder of earlier jobs; None if a sample says what rows cost.
        limits: limits that it will be submitted with.
        cost: model of what work costs where it is to run; as it is measured here if None.

    Raises:
        SettingError: there are no rates; `sample` is none; or as of `sample_flow`, or
            `sample_of_history`.
    """
    if history is not None:
        sample = sample_of_history(flow, history, limits=limits)
    if rates is None and not (isinstance(sample, FlowSample) and sample.recorded):
        raise SettingError(
            f"flow {flow.name!r} has no rates: give rates=, events a second of each source or of "
            "all together, or history=, a folder that earlier jobs of it have kept samples in"
        )
    sample = _as_sample(sample, flow, limits=limits, cost=cost)
    return sample, sample.recorded if rates is None else rates


def _as_sample(
    sample: int | FlowSample,
    flow: Dataflow,
    *,
    limits: Limits | None = None,
    cost: CostModel | None = None,
) -> FlowSample:
    """Return a sample of so many rows, or the one that was taken before."""
    if isinstance(sample, FlowSample):
        return sample
    if isinstance(sample, bool) or not isinstance(sample, int):
        raise SettingError(
            f"sample={sample!r} is not a sample, and costs are known from nothing else: give a "
            "number of rows, or what sample_flow(flow) returned"
        )
    return sample_flow(flow, rows=sample, limits=limits, cost=cost)
