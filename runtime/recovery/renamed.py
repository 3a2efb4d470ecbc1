"""Names of a checkpoint's steps in a flow whose user has renamed some.

```
renamed={"rides": "trips"}    rides, rides.1, rides→out   ──▶   trips, trips.1, trips→out
```
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from slackwater.runtime.errors import SettingError
from slackwater.runtime.nearest import choices, listed
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.recovery.checkpoint import SlotPart

__all__ = ["check_renamed", "names_then", "renamed_part"]


def check_renamed(renamed: Mapping[str, str], steps: Collection[str]) -> None:
    """Check names of steps that users give, {old: new}, before a checkpoint is known.

    Args:
        renamed: new name of each step that has one.
        steps: names of the flow's steps now.

    Raises:
        SettingError: a new name is no step, an old one still is, or two have the same new name.
    """
    for old, new in renamed.items():
        if new not in steps:
            raise SettingError(
                f"renamed={{{old!r}: {new!r}}}: the flow has no step {new!r}; {choices(new, steps)}"
            )
        if old in steps:
            raise SettingError(
                f"renamed={{{old!r}: {new!r}}}: the flow still has a step {old!r}; omit it, or "
                "give that another name first: stop the job, and start it once with each name"
            )
    if len({*renamed.values()}) < len(renamed):
        raise SettingError(
            f"renamed= gives two steps one name ({listed(renamed.values())}); name each step once"
        )


def names_then(plan: Plan, renamed: Mapping[str, str]) -> dict[str, str]:
    """Return {step, stage or channel: its name at the checkpoint}, of those that differ.

    Args:
        plan: plan of the flow as it is now.
        renamed: new names of steps, {old: new}.
    """
    old_of = {new: old for old, new in renamed.items()}
    then = dict(old_of)
    for stage in plan.stages:
        then[stage.name] = stage.subject._replace(
            step=old_of.get(stage.subject.step, stage.subject.step)
        ).name
    for channel in plan.channels:
        then[channel.name] = channel.name_between(
            then.get(channel.source, channel.source), then.get(channel.target, channel.target)
        )
    return {now: name for now, name in then.items() if name != now}


def renamed_part(part: SlotPart, names: Mapping[str, str]) -> SlotPart:
    """Return a part with other names of its steps, stages and channels.

    Args:
        part: part of a checkpoint.
        names: new names, {old: new}.
    """
    if not names:
        return part
    stream, measures = part.state["stream"], part.state["measures"]
    return part._replace(
        state={
            **part.state,
            "stream": _stream(stream, names),
            "measures": _everywhere(measures, names),
        },
        results={field: _keys(own, names) for field, own in part.results.items()}
        | {"meters": _everywhere(part.results["meters"], names)},
        messages=_keys(part.messages, names),
        positions=_keys(part.positions, names),
    )


def _stream(stream: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    by_name = ("sent", "received", "credit", "owed", "granted", "credited", "turns")
    stages = {names.get(n, n): _stage(state, names) for n, state in stream["stages"].items()}
    newest = {}
    for subject, number in stream["newest"].items():
        kind, _, name = subject.partition(" ")
        newest[f"{kind} {names.get(name, name)}"] = number
    return {
        **stream,
        "stages": stages,
        **{field: _keys(stream[field], names) for field in by_name},
        "ended": [names.get(name, name) for name in stream["ended"]],
        "newest": newest,
    }


def _stage(state: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the state of a stage: it names its channels, and idle sources."""
    queues, node = state["queues"], state["node"]
    queues = {**queues, "paths": _keys(queues["paths"], names)}
    intake = node.get("intake") if isinstance(node, Mapping) else None
    if isinstance(intake, Mapping) and isinstance(idle := intake.get("idle"), Mapping):
        idle = {**idle, "marks": _keys(idle["marks"], names)}
        node = {**node, "intake": {**intake, "idle": idle}}
    return {**state, "queues": queues, "node": node}


def _keys(own: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in own.items()}


def _everywhere(measured: Any, names: Mapping[str, str]) -> Any:
    """Return reports and samples with other names, as keys and as texts.

    They hold no values of rows' keys but as text of a hot key.
    """
    if isinstance(measured, Mapping):
        return {names.get(n, n): _everywhere(own, names) for n, own in measured.items()}
    if isinstance(measured, list | tuple):
        return type(measured)(_everywhere(own, names) for own in measured)
    return names.get(measured, measured) if isinstance(measured, str) else measured
