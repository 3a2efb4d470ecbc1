"""What a run can know of itself: its inputs, and its versions."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version

from slackwater.runtime.plan.flow_fingerprints import FlowFingerprint
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.sinks import Fingerprint, InputPrint, SinkRun

__all__ = ["input_prints", "release", "sink_runs", "slots_with_inputs"]


def input_prints(stages: Iterable[Stage]) -> dict[str, InputPrint]:
    """Return what sources read, of those that can tell: {source: what}. For the sources' host.

    Raises:
        IngestError: an input cannot be read.
    """
    found = {}
    for stage in stages:
        if isinstance(stage.step, SourceStep):
            fingerprint = getattr(stage.step.source.input, "fingerprint", None)
            if fingerprint is not None:
                found[stage.name] = InputPrint(*fingerprint())
    return found


def slots_with_inputs(plan: Plan) -> list[str]:
    """Return the slots whose `input_prints` are wanted: some output depends on nothing else."""
    told = {
        name
        for fingerprint in plan.fingerprints.values()
        if not fingerprint.why_not
        for name in fingerprint.sources
    }
    return [slot for slot in plan.slot_names if told & {s.name for s in plan.stages_of(slot)}]


def sink_runs(
    plan: Plan, job: str, inputs: Iterable[Mapping[str, InputPrint]]
) -> dict[str, SinkRun]:
    """Return what each sink that writes files writes for: {sink: run}.

    Args:
        plan: of the run.
        job: its id.
        inputs: the `input_prints` of its slots.
    """
    known = {name: one for prints in inputs for name, one in prints.items()}
    return {
        name: _run(plan, job, fingerprint, known) for name, fingerprint in plan.fingerprints.items()
    }


def release() -> dict[str, str]:
    """Return the versions that rows, or the bytes that they are written in, depend on."""
    packages = ("slackwater", "pyarrow", "numpy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def _run(
    plan: Plan, job: str, fingerprint: FlowFingerprint, inputs: Mapping[str, InputPrint]
) -> SinkRun:
    if fingerprint.why_not:
        return SinkRun(job=job, flow=plan.flow, why_not=fingerprint.why_not)
    prints = {source: inputs[source] for source in fingerprint.sources}
    return SinkRun(
        job=job,
        flow=plan.flow,
        fingerprint=Fingerprint(flow=fingerprint.flow, inputs=prints, release=release()),
    )
