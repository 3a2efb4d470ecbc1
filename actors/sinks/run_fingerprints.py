"""Fingerprint a run: its inputs and its versions."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version

from slackwater.runtime.plan.flow_fingerprints import FlowFingerprint
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.sinks.fingerprint import Fingerprint, InputPrint, SinkRun

__all__ = ["input_prints", "release", "sink_runs", "slots_with_inputs"]


def input_prints(stages: Iterable[Stage]) -> dict[str, InputPrint]:
    """Return the fingerprints of the inputs that have one, {source: fingerprint}.

    Call it on the host of the sources.

    Raises:
        IngestError: an input cannot be read, or its `fingerprint` raised; names the source.
        SchemaError: a fingerprint is not a pair of texts.
    """
    prints = {}
    for stage in stages:
        if isinstance(stage.step, SourceStep) and (made := stage.step.fingerprint()) is not None:
            prints[stage.name] = made
    return prints


def slots_with_inputs(plan: Plan) -> list[str]:
    """Return the slots whose `input_prints` some output depends on."""
    sources = {
        name
        for fingerprint in plan.fingerprints.values()
        if not fingerprint.why_not
        for name in fingerprint.sources
    }
    return [slot for slot in plan.slot_names if sources & {s.name for s in plan.stages_of(slot)}]


def sink_runs(
    plan: Plan, job: str, inputs: Iterable[Mapping[str, InputPrint]]
) -> dict[str, SinkRun]:
    """Return the run of each sink that writes files, {sink: run}.

    Args:
        plan: plan of the run.
        job: id of the job.
        inputs: `input_prints` of its slots.
    """
    known = {name: known for prints in inputs for name, known in prints.items()}
    return {
        name: _run(plan, job, fingerprint, known) for name, fingerprint in plan.fingerprints.items()
    }


def release() -> dict[str, str]:
    """Return the versions that rows and their bytes in files depend on."""
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
        fingerprint=Fingerprint(
            flow=fingerprint.flow, inputs=prints, release=release(), form=fingerprint.form
        ),
    )
