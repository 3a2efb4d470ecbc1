"""Late rows in a flow: the stream of those that could not count, and windows that are corrected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import pyarrow as pa

from runtime.errors import DuplicateName, FlowError, SettingError
from runtime.plan.steps import (
    REVISION,
    AggregateStep,
    JoinStep,
    Late,
    LateStep,
    Step,
)

Side: TypeAlias = Literal["left", "right"]


def late_step(steps: Mapping[str, Step], of: str, *, side: Side | None, name: str) -> LateStep:
    """Return the step that takes the late rows of a join or an aggregate.

    Args:
        steps: of the flow.
        of: the name of that join or aggregate.
        side: of a join; None: the keys of both.
        name: of the step.

    Raises:
        FlowError: it is another step, or an aggregate has no sides.
        SettingError: no such side.
        DuplicateName: a column of theirs is named as one of ours.
    """
    behind = steps[of]
    if not isinstance(behind, JoinStep | AggregateStep):
        raise FlowError(
            f"step {name!r}: {of!r} is no join and no aggregate, so no row comes too late "
            "to count there; write pairs.late() on what join(...) or aggregate(...) returned"
        )
    inputs = [steps[source].schema for source in behind.inputs]
    if side not in (None, "left", "right"):
        raise SettingError(f"step {name!r}: late({side!r}) must be 'left', 'right' or nothing")
    ports: list[Mapping[str, str] | None]
    if isinstance(behind, AggregateStep):
        if side is not None:
            raise FlowError(f"step {name!r}: {of!r} has one input; write late()")
        ports = [{column: column for column in inputs[0].names}]
    elif side is None:
        ports = [
            dict(zip(behind.left_on, keys, strict=True))
            for keys in (behind.left_on, behind.right_on)
        ]
    else:
        ports = [
            {column: column for column in schema.names} if side == own else None
            for own, schema in zip(("left", "right"), inputs, strict=True)
        ]
    fields = _fields(ports, inputs)
    ours = {"late_step": pa.string(), "late_side": pa.string()}
    ours |= {"late_event_time": pa.timestamp("ns"), "late_by_ns": pa.int64()}
    ours |= {"late_dropped": pa.bool_()}
    if isinstance(behind, AggregateStep):
        del ours["late_side"]
    for column in ours:
        if column in fields:
            raise DuplicateName(
                f"step {name!r}: a late row has a column {column!r} already; rename it before "
                f"{of!r} with .select(...)"
            )
    schema = pa.schema([*fields.items(), *ours.items()])
    return LateStep(name=name, inputs=(of,), schema=schema, columns=tuple(ports))


def _fields(
    ports: list[Mapping[str, str] | None], inputs: list[pa.Schema]
) -> dict[str, pa.DataType]:
    columns, schema = next(
        (columns, schema) for columns, schema in zip(ports, inputs, strict=True) if columns
    )
    return {leaves: schema.field(came).type for leaves, came in columns.items()}


def revised(schema: pa.Schema, late: Late, *, step: str) -> pa.Schema:
    """Return what leaves an aggregate: with late="correct" there is a `revision`.

    Raises:
        SettingError: late is neither "drop" nor "correct".
        DuplicateName: there is a column of that name.
    """
    if late not in ("drop", "correct"):
        raise SettingError(f"step {step!r}: late={late!r} must be 'drop' or 'correct'")
    if late == "drop":
        return schema
    if REVISION in schema.names:
        raise DuplicateName(
            f"step {step!r}: late='correct' adds a column {REVISION!r}, and there is one already; "
            "give that key or aggregate another name"
        )
    return schema.append(pa.field(REVISION, pa.int64()))


def refuse_corrected(steps: Mapping[str, Step], *inputs: str, step: str) -> None:
    """Check that no corrected window reaches a step with state: it would count twice.

    Raises:
        FlowError: one does; names both steps.
    """
    waiting = list(inputs)
    for name in waiting:  # grows while we go
        behind = steps[name]
        if isinstance(behind, AggregateStep) and behind.late == "correct":
            raise FlowError(
                f"step {step!r} is behind {name!r}, whose windows leave again when late rows "
                "correct them, and would count each revision; write late='drop' there, or let a "
                "sink keep the highest revision"
            )
        if not isinstance(behind, JoinStep | AggregateStep | LateStep):
            waiting += [one for one in behind.inputs if one not in waiting]
