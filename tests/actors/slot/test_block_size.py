"""The size of a block that is read ahead, told without asking each of its columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from slackwater.actors.slot.block_size import BlockSize

NUMBERS = {"n": pa.array(range(1_000), pa.int64()), "small": pa.array(range(1_000), pa.int16())}
FLAGS = {"flag": pa.array([True, False, None, True] * 250)}
TEXT = {"word": pa.array(["word" * 50] * 1_000)}
LISTS = {"list": pa.array([[1, 2, 3]] * 1_000)}


@pytest.mark.parametrize("columns", [NUMBERS, NUMBERS | FLAGS, TEXT, NUMBERS | TEXT, LISTS])
@pytest.mark.parametrize("rows", [1, 4, 500, 1_000])
def test_a_block_is_said_to_be_no_smaller_than_it_is_and_hardly_larger(
    columns: dict[str, pa.Array], rows: int
) -> None:
    block, size = pa.record_batch(columns).slice(3, rows), BlockSize()
    for _ in range(2):
        assert block.nbytes <= size.of(block) <= block.nbytes + rows + 64


def test_a_small_block_of_text_is_as_large_as_its_buffers() -> None:
    block = pa.record_batch({"word": pa.array(["a", "b", "c"])})
    assert BlockSize().of(block) == block.get_total_buffer_size()


def test_another_schema_is_seen() -> None:
    size = BlockSize()
    numbers, text = pa.record_batch(NUMBERS), pa.record_batch(TEXT)
    sizes = [size.of(block) for block in (numbers, text, numbers)]
    assert sizes[1] == text.nbytes
    assert sizes[0] == sizes[2] < 2 * numbers.nbytes
