"""The schema of pairs, and the checks of a join's columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from slackwater.runtime.errors import FlowError, TypeMismatch
from slackwater.runtime.expressions.comparable import Operand
from slackwater.runtime.expressions.holding import cast_of_both
from slackwater.runtime.model.schema import is_text
from slackwater.runtime.operators.ground.checks import is_whole, key_types, unique_columns
from slackwater.runtime.operators.ground.drift import CERTAIN, Drift


def joined_schema(
    left: pa.Schema,
    right: pa.Schema,
    on: tuple[Sequence[str], Sequence[str]],
    *,
    suffix: str,
    step: str,
) -> tuple[pa.Schema, dict[str, str]]:
    """Return the columns of pairs, and {right column: name it leaves under}, without keys.

    Args:
        left: columns of the left rows; they keep their names.
        right: columns of the right rows; a name that the left has too gets `suffix`.
        on: keys of the left, keys of the right, pairwise.
        suffix: suffix of right columns.
        step: the step's name, for errors.

    Raises:
        FlowError: no keys, or not pairwise.
        ColumnError, TypeMismatch: a key is not there, or two cannot be equal.
        DuplicateName: two columns would leave under one name.
    """
    left_on, right_on = on
    if not left_on or len(left_on) != len(right_on):
        raise FlowError(
            f"step {step!r}: a join needs keys, as many on the left ({len(left_on)}) as on the "
            f"right ({len(right_on)}): on='area', or left_on= and right_on=; to pair every row "
            "with every other, assign the same literal to both sides"
        )
    pairs = zip(
        left_on,
        key_types(left, left_on, step=step),
        right_on,
        key_types(right, right_on, step=step),
        strict=True,
    )
    for left_key, left_type, right_key, right_type in pairs:
        if left_type == right_type or (is_text(left_type) and is_text(right_type)):
            continue
        if not (is_whole(left_type) and is_whole(right_type)):
            raise TypeMismatch(
                f"step {step!r}: left key {left_key!r} is {left_type} and right key "
                f"{right_key!r} is {right_type}; keys need one type on both sides: before the join "
                f"{cast_of_both(Operand(left_type), Operand(right_type))}, in with_columns"
            )
    right_names = {
        name: name + suffix if name in left.names else name
        for name in right.names
        if name not in right_on
    }
    way_out = "choose another suffix=, or rename with .select(new='old') before the join"
    unique_columns([*left.names, *right_names.values()], step=step, way_out=way_out)
    fields = [pa.field(leaves, right.field(name).type) for name, leaves in right_names.items()]
    return pa.schema([*left, *fields]), right_names


def judged(schema: pa.Schema, drift: Drift | None, *, step: str) -> pa.Schema:
    """Return the schema of pairs: with drift= there is a last column, `certain`.

    Raises:
        DuplicateName: there is a column of that name.
    """
    if drift is None:
        return schema
    way_out = "drift= adds one of that name: rename it with .select(new='old') before"
    unique_columns([*schema.names, CERTAIN], step=step, way_out=way_out)
    return schema.append(pa.field(CERTAIN, pa.bool_()))
