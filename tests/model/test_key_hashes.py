"""Hashes of keys: equal keys alike in every process, others apart, nulls from values too."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from slackwater.runtime.model.hashes import (
    KEY_GROUPS,
    even_groups,
    key_hashes,
    owners,
    owners_of_rows,
)
from slackwater.runtime.model.nullable import Nullable

MANY = 200_000


def of(*columns: Any) -> list[int]:
    return key_hashes(columns, len(columns[0])).tolist()


def test_a_hash_is_the_same_in_each_release_of_its_version() -> None:
    assert of(np.array([0, 1])) == [248629889170205, 159472906176770]
    assert of(pa.array(["", "a", "ab"])) == [248629889170205, 73614283394119, 133011535650990]


def test_a_null_is_a_key_of_its_own() -> None:
    assert len(set(of(pa.array(["", None, "a", "b"])))) == 4
    assert len(set(of(Nullable(np.array([0, 0, 1]), np.array([True, False, True]))))) == 3
    floats = np.array([0.0, np.nan, np.inf, -np.inf, np.finfo(np.float64).max])
    assert len(set(of(floats))) == 5


def test_equal_keys_have_one_hash_whatever_their_type() -> None:
    numbers = [0, 1, -5, 127]
    assert of(np.array(numbers, np.int8)) == of(np.array(numbers))
    assert of(np.array([0.0, np.nan])) == of(np.array([-0.0, -np.nan]))
    words = ["", None, "é", "longer than a word", "é"]
    assert of(pa.array(words)) == of(pa.array(words, pa.large_string()))
    assert of(pa.array([*words, *words]).slice(5)) == of(pa.array(words))
    short, long = (pa.array([Decimal("1.50"), None], pa.decimal128(10, scale)) for scale in (2, 4))
    assert of(short) == of(long)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([f"{number:x}" for number in range(MANY)]),
        pa.array(
            [f"vehicle {number // 1_000:03} of line {number % 1_000}" for number in range(MANY)]
        ),
        np.arange(MANY),
        np.arange(MANY) * 2**40,
        np.arange(MANY) / 7,
    ],
    ids=["hex", "words", "whole", "high", "float"],
)
def test_of_many_keys_no_two_meet_and_each_replica_owns_its_part(column: Any) -> None:
    hashes = key_hashes([column], MANY)
    assert len(np.unique(hashes)) == MANY
    for replicas in (2, 7, KEY_GROUPS):
        rows = np.bincount(owners(hashes, even_groups(replicas)), minlength=replicas)
        groups = np.bincount(np.arange(KEY_GROUPS) * replicas // KEY_GROUPS)
        assert np.allclose(rows / MANY, groups / KEY_GROUPS, rtol=0.15)


def test_keys_of_several_columns_are_told_apart() -> None:
    first, second = np.array([1, 2, 1, 2]), pa.array(["1", "1", "2", "2"])
    assert len(set(of(first, second))) == 4
    assert of(first, second) != of(second, first)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
@pytest.mark.parametrize("width", [0, 3, 200])
def test_a_row_has_the_owner_of_its_hash_in_a_short_range_too(dtype: Any, width: int) -> None:
    ends = np.iinfo(dtype)
    for least in (ends.min, 0, ends.max - min(width, 100)):
        highest = min(least + width, ends.max)
        column = np.random.default_rng(1).integers(least, highest, 2_000, dtype, endpoint=True)
        expected = owners(key_hashes([column], 2_000), even_groups(7))
        assert owners_of_rows([column], 2_000, even_groups(7)).tolist() == expected.tolist()
    extremes = np.array([ends.min, ends.max] * 50, dtype)
    expected = owners(key_hashes([extremes], 100), even_groups(7))
    assert owners_of_rows([extremes], 100, even_groups(7)).tolist() == expected.tolist()
