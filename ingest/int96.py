"""INT96 timestamps of parquet: Spark's default, which hold any year and nanoseconds.

```
file    9999-12-31   2020-01-01 00:00:00.123456789
in us   9999-12-31   2020-01-01 00:00:00.123456      the type of the column
in ns   1816-03-30   2020-01-01 00:00:00.123456789   the same modulo 2**64
```

They are read in both units: the second shows the digits that the first has lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.runtime.model.exact_casts import cast_exactly, parts_of
from slackwater.runtime.model.schema import is_nested, values_of

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

__all__ = ["Block", "blocks_of", "cast_in_both", "in_both", "opened", "whole_value"]


class Block(NamedTuple):
    """Rows of a file.

    Attributes:
        rows: INT96 timestamps in microseconds.
        in_ns: {column that has INT96 timestamps: the same in nanoseconds, modulo 2**64}.
    """

    rows: pa.RecordBatch
    in_ns: dict[str, pa.Array]

    def after(self, count: int) -> Block:
        """Return the block without its first rows."""
        of_rows = {name: column.slice(count) for name, column in self.in_ns.items()}
        return Block(self.rows.slice(count), of_rows)


def opened(path: str, unit: str = "us") -> ParquetFile:
    """Open a parquet file whose INT96 timestamps are read in a unit."""
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415 (slow to import)

    return ParquetFile(path, coerce_int96_timestamp_unit=unit)


def blocks_of(
    file: ParquetFile, path: str, names: list[str], rows: int, *, first: int
) -> Iterator[Block]:
    """Yield a file's columns in blocks, from a row on.

    Only row groups from that of the row on are read.

    Args:
        file: file that `opened` returned.
        path: place of the file.
        names: names of the columns.
        rows: most in a block.
        first: the row to begin with.
    """
    groups, skipped = _groups_from(file, first)
    for block in _blocks_of(file, path, names, rows, groups):
        if skipped >= len(block.rows):
            skipped -= len(block.rows)
            continue
        yield block.after(skipped) if skipped else block
        skipped = 0


def _groups_from(file: ParquetFile, row: int) -> tuple[range, int]:
    """Return row groups from a row's on, and earlier rows of the first."""
    count = file.num_row_groups
    for group in range(count):
        rows = file.metadata.row_group(group).num_rows
        if row < rows:
            return range(group, count), row
        row -= rows
    return range(count, count), 0


def _blocks_of(
    file: ParquetFile, path: str, names: list[str], rows: int, groups: range
) -> Iterator[Block]:
    wide = [name for name in _int96_columns(file, path) if name in names]
    threads = len(names) > 1
    blocks = file.iter_batches(
        batch_size=rows, columns=names, row_groups=groups, use_threads=threads
    )
    if not wide:
        yield from (Block(block, {}) for block in blocks)
        return
    with opened(path, "ns") as finer:
        # Of the same columns: where blocks end depends on them.
        others = finer.iter_batches(batch_size=rows, columns=names, row_groups=groups)
        for block, other in zip(blocks, others, strict=True):
            yield Block(block, {name: other.column(name) for name in wide})


def _int96_columns(file: ParquetFile, path: str) -> list[str]:
    """Return the columns that have INT96 timestamps, at any depth."""
    leaves = file.schema
    if all(leaves.column(at).physical_type != "INT96" for at in range(len(leaves))):
        return []
    with opened(path, "ns") as finer:
        pairs = zip(file.schema_arrow, finer.schema_arrow, strict=True)
        return [one.name for one, other in pairs if one.type != other.type]


def in_both(block: Block, name: str) -> pa.StructArray:
    """Return an INT96 column in both units, as `cast_in_both` takes it."""
    return pa.StructArray.from_arrays(
        [block.rows.column(name), block.in_ns[name]], names=["in_us", "in_ns"]
    )


def whole_value(block: Block, name: str, row: int) -> pa.Scalar:
    """Return a value with its nanoseconds, unless it is too far away for them."""
    in_us = block.rows.column(name).slice(row, 1)
    if name not in block.in_ns:
        return in_us[0]
    in_ns = block.in_ns[name].slice(row, 1)
    try:
        cast_exactly(in_us, in_ns.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return in_us[0]
    return in_ns[0]


def cast_in_both(both: pa.StructArray, to: pa.DataType) -> pa.Array:
    """Cast INT96 timestamps if none changes.

    Args:
        both: files as `in_both` returns them.
        to: the type; of nanoseconds for those that have them.

    Raises:
        ArrowInvalid, ArrowNotImplementedError: a value would change, or there is no such cast.
    """
    in_us, in_ns = both.flatten()
    made = cast_exactly(in_us, to)
    if not _has_nanoseconds(in_us, in_ns):
        return made
    if to != in_ns.type and not (pa.types.is_timestamp(to) and to.unit == "ns"):
        raise pa.ArrowInvalid("it has nanoseconds, and the type has none; say 'timestamp[ns]'")
    return cast_exactly(in_ns, to)


def _has_nanoseconds(in_us: pa.Array, in_ns: pa.Array) -> bool:
    """Return whether times, at any depth, have digits after those of microseconds."""
    if is_nested(in_us.type):
        of_ns = parts_of(in_ns)
        return any(_has_nanoseconds(part, of_ns[name]) for name, part in parts_of(in_us).items())
    if in_us.type == in_ns.type:
        return False
    whole, finer = (values_of(one.view(pa.int64())) for one in (in_us, in_ns))
    return bool((finer - whole * np.int64(1_000)).any())  # modulo 2**64, as the finer are
