"""Read a bounded dataset of Ray Data from the object store, where its blocks are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import IngestError, SchemaError
from slackwater.runtime.model.meeting_types import meeting_type
from slackwater.runtime.sources.frames import without_views

if TYPE_CHECKING:
    from ray.data import Dataset

    from slackwater.ingest.frame_input import FrameInput

__all__ = ["ray_dataset"]


@checked_call
def ray_dataset(dataset: Dataset) -> FrameInput:
    """Run a dataset of Ray Data; return its rows as an input, block after block.

    Blocks until all rows are in Ray's object store, which needs CPUs that no job holds. No rows
    come into this process: a source fetches one block at a time.

    Args:
        dataset: dataset of the Ray that this process is connected to, such as
            `ray.data.read_parquet(…)`.

    Raises:
        SchemaError: no dataset, one without columns, or blocks whose types do not fit together.
        IngestError: the dataset failed, with the cause.
    """
    import ray  # noqa: PLC0415 (slow to import)
    from ray.data import Dataset  # noqa: PLC0415 (as above)

    from slackwater.ingest.frame_input import FrameInput  # noqa: PLC0415 (as above)

    if not isinstance(dataset, Dataset):
        raise SchemaError(
            f"ray_dataset: {type(dataset).__qualname__} is not a dataset of Ray Data; pass "
            "ray.data.read_parquet('loops/'), say, or write sw.table(…) for rows in memory"
        )
    try:
        blocks = _blocks_in_order(dataset)
        look: Any = ray.remote(num_returns=2)(_arrow_of)
        looked: list[Any] = [look.remote(block) for block in blocks]
        schemas: list[tuple[pa.Schema, bool]] = ray.get([schema for schema, _ in looked])
    except ray.exceptions.RayError as problem:
        raise IngestError(
            f"ray_dataset: Ray Data failed: {_cause(problem)}; correct it, and read it again"
        ) from problem
    refs = [
        made if is_made else block
        for block, (_, made), (_, is_made) in zip(blocks, looked, schemas, strict=True)
    ]
    schema = _common([schema for schema, _ in schemas])
    return FrameInput(tuple(refs), schema, kind="ray dataset", part="block")


def _blocks_in_order(dataset: Dataset) -> list[Any]:
    """Run the dataset; return its blocks in order, which Ray keeps on request."""
    options = dataset.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        return list(dataset.to_arrow_refs())
    finally:
        options.preserve_order = before


def _arrow_of(block: Any) -> tuple[tuple[pa.Schema, bool], pa.Table | None]:
    """Return a block's schema, and a table if the block is a frame of pandas."""
    if isinstance(block, pa.Table):
        return (block.schema, False), None
    table = pa.Table.from_pandas(block, preserve_index=False)
    return (table.schema, True), table


def _common(schemas: Sequence[pa.Schema]) -> pa.Schema:
    if not any(schemas):
        raise SchemaError("ray_dataset: the dataset has no columns; read one with rows")
    types: dict[str, pa.DataType] = {}
    for field in chain.from_iterable(schemas):
        so_far = types.get(field.name, field.type)
        common = meeting_type(so_far, field.type) or _promoted(so_far, field.type)
        if common is None:
            raise SchemaError(
                f"ray_dataset: column {field.name!r}: its blocks have different types: {so_far} "
                f"and {field.type}; cast it in the dataset, with map_batches"
            )
        types[field.name] = common
    return without_views(pa.schema(list(types.items())))


def _promoted(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return Arrow's common type, as of whole numbers and floats; None if they have none."""
    schemas = [pa.schema([("x", kind)]) for kind in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("x").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


_RAISED = re.compile(r"[A-Za-z_][\w.]*: .*")


def _cause(problem: Exception) -> str:
    """Return the line of the first exception in Ray's traceback, which is the user's."""
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    return next(filter(_RAISED.fullmatch, lines), lines[0])
