"""Record batches as an input: what is no list of them is refused where it is given."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import SchemaError

BATCH = pa.record_batch({"t": [1, 2]})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (BATCH, r"a RecordBatch is not a list of blocks; write \[batch\]"),
        (pa.table({"t": [1]}), r"a Table is not a list of blocks; .* table\.to_batches\(\)"),
        (None, "None is not a list of blocks"),
        ([BATCH, None], "block 1 is None; it must be a pyarrow.RecordBatch"),
        ([{"t": 1}], "block 0 is a dict; it must"),
        ([pa.table({"t": [1]})], "block 0 is a Table; it must"),
        ([BATCH, pa.record_batch({"t": ["x"]})], "block 1 has .* unlike the first"),
        ([], "no block shows the columns"),
    ],
)
def test_what_is_no_list_of_blocks_is_refused(given: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=f"blocks: {said}"):
        sw.connectors.blocks(given)


def test_blocks_may_come_of_a_generator() -> None:
    given = sw.connectors.blocks(BATCH for _ in range(3))
    assert given.describe() == "table of 6 rows"
