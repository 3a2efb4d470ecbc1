"""Text of a flow, to read before it runs."""

from __future__ import annotations

from slackwater.runtime.errors import FlowError, SchemaError
from slackwater.runtime.model import READY_ONLY, format_ns
from slackwater.runtime.plan.flow_fingerprints import why_results_vary
from slackwater.runtime.plan.graph import StepGraph
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.plan.traits import Role
from slackwater.runtime.plan.unpaced import unpaced_note


def explain_graph(graph: StepGraph) -> str:
    """Return the steps of a flow, a paragraph for each, in topological order."""
    varies = ""
    deadline = "" if graph.deadline_ns is None else f", deadline {format_ns(graph.deadline_ns)}"
    if graph.deadline_ns is None and graph.release == READY_ONLY:
        deadline = " (no deadline: gates release only what is ready)"
        varies = why_results_vary(graph.steps)
    lines = [f"dataflow {graph.flow}: {graph.release.text}{deadline}"]
    sources = {s.name: s.source for s in graph.steps.values() if isinstance(s, SourceStep)}
    if varies:
        lines.append(f"note: results may differ from run to run, for {varies}")
    if note := unpaced_note(graph.deadline_ns, sources):
        lines.append(f"note: {note}")
    for step in graph.steps.values():
        inputs = f" ← {', '.join(step.inputs)}" if step.inputs else ""
        lines += ["", f"{step.name} ({step.traits.kind}){inputs}"]
        lines += [f"    {line}" for line in step.explained(graph.steps)]
        if step.traits.role is not Role.SINK:
            columns = ", ".join(f"{field.name} {field.type}" for field in step.schema)
            lines.append(f"    columns  {columns}")
    try:
        graph.check()
    except (FlowError, SchemaError) as problem:
        lines += ["", f"cannot run yet: {problem}"]
    return "\n".join(lines)
