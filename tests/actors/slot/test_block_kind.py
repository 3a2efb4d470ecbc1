"""The size of a block that is read ahead, told without asking each of its columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from slackwater.actors.slot.read_ahead import BlockKind

NUMBERS = {"n": pa.array(range(1_000), pa.int64()), "small": pa.array(range(1_000), pa.int16())}
FLAGS = {"flag": pa.array([True, False, None, True] * 250)}
TEXT = {"word": pa.array(["word" * 50] * 1_000)}
LISTS = {"list": pa.array([[1, 2, 3]] * 1_000)}


@pytest.mark.parametrize("columns", [NUMBERS, NUMBERS | FLAGS, TEXT, NUMBERS | TEXT, LISTS])
@pytest.mark.parametrize("rows", [1, 4, 500, 1_000])
def test_a_block_is_said_to_be_no_smaller_than_it_is_and_hardly_larger(
    columns: dict[str, pa.Array], rows: int
) -> None:
    block = pa.record_batch(columns).slice(3, rows)
    size = BlockKind.of(block.schema).bytes_of(block, rows)
    assert block.nbytes <= size <= block.nbytes + rows + 64


def test_a_small_block_of_text_is_as_large_as_its_buffers() -> None:
    block = pa.record_batch({"word": pa.array(["a", "b", "c"])})
    assert BlockKind.of(block.schema).bytes_of(block, 3) == block.get_total_buffer_size()


def test_blocks_with_dictionaries_are_not_joined() -> None:
    words = pa.array(["a", "b"]).dictionary_encode()
    for column, joins in ((pa.array([1, 2]), True), (words, False), (pa.array([[1]] * 2), True)):
        assert BlockKind.of(pa.record_batch({"x": column}).schema).joins is joins
    nested = pa.schema({"x": pa.list_(words.type)})
    assert not BlockKind.of(nested).joins
