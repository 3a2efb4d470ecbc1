"""Stream of late rows, which a step could not count in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from slackwater.runtime.errors import DuplicateName, FlowError
from slackwater.runtime.plan.event_time_type import event_time_type
from slackwater.runtime.plan.step import NO_LATE, GatedStep, Side, Step
from slackwater.runtime.plan.steps import LateStep


def late_step(steps: Mapping[str, Step], of: str, *, side: Side | None, name: str) -> LateStep:
    """Return the step that takes the late rows of a join or an aggregate.

    Args:
        steps: steps of the flow.
        of: the name of that join or aggregate.
        side: side of a join; None if the keys of both sides are meant.
        name: name of the step.

    Raises:
        FlowError: the step is of another kind, or a side is given for an aggregate.
        SettingError: `side` is not a side.
        DuplicateName: a column has the name of a column that late rows get.
    """
    gated = steps[of]
    if not isinstance(gated, GatedStep):
        raise FlowError(NO_LATE.format(who=name, of=of))
    inputs = [steps[source].schema for source in gated.inputs]
    ports = gated.late_columns(inputs, side=side, who=name)
    fields = _fields(ports, inputs)
    ours = {"late_step": pa.string(), "late_side": pa.string()}
    time = event_time_type(steps, gated.inputs)
    ours |= {"late_event_time": time, "late_by_ns": pa.int64()}
    ours |= {"late_dropped": pa.bool_()}
    if len(ports) == 1:
        del ours["late_side"]
    for column in ours:
        if column in fields:
            raise DuplicateName(
                f"step {name!r}: a late row has a column {column!r} already; rename it before "
                f"{of!r} with .select(...)"
            )
    schema = pa.schema([*fields.items(), *ours.items()])
    return LateStep(name=name, inputs=(of,), schema=schema, columns=ports)


def _fields(
    ports: Sequence[Mapping[str, str] | None], inputs: Sequence[pa.Schema]
) -> dict[str, pa.DataType]:
    columns, schema = next(
        (columns, schema) for columns, schema in zip(ports, inputs, strict=True) if columns
    )
    return {leaves: schema.field(came).type for leaves, came in columns.items()}
