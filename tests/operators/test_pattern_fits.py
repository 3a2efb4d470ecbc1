"""Which events of a pattern rows are, however many types and predicates there are."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import Batch
from slackwater.runtime.patterns.normal import Asked
from slackwater.runtime.patterns.operator import fits as room
from slackwater.runtime.patterns.operator.fits import Fits
from tests.support.rows import bound


def batch_of(of: Random, rows: int, *, types: int) -> Batch:
    times = np.arange(rows)
    values = np.array([of.randrange(200) for _ in range(rows)])
    kinds = pa.array([f"t{of.randrange(types + 2)}" for _ in range(rows)])
    return Batch(event_time_ns=times, stimulus_time_ns=times, columns={"v": values, "kind": kinds})


def fitting(asked: list[Asked], batch: Batch) -> list[tuple[int, ...]]:
    """Return what each row fits, a row at a time."""
    return [
        tuple(
            number
            for number, one in enumerate(asked)
            if (one.types is None or kind in one.types)
            and (one.where is None or value > int(one.name[1:]))
        )
        for kind, value in zip(
            batch.columns["kind"].tolist(), batch.columns["v"].tolist(), strict=True
        )
    ]


@pytest.mark.parametrize("has_types", [True, False], ids=["types", "no types"])
@pytest.mark.parametrize("many", [1, 30, 31, 61, 64, 150])
def test_no_number_of_types_and_predicates_is_too_many(many: int, has_types: bool) -> None:
    of = Random(many)  # noqa: S311 - a seeded stream
    asked = [
        Asked(f"a{k}", (f"t{k}",) if has_types else None, where=bound(col("v") > k, pa.int64()))
        for k in range(many)
    ]
    fits = Fits(asked, type_column="kind" if has_types else None, step="many")
    for _ in range(3):
        batch = batch_of(of, 40, types=many)
        places, kinds = fits.of(batch)
        got = dict(zip(places.tolist(), (fits.of_kind[one] for one in kinds.tolist()), strict=True))
        expected = fitting(asked, batch)
        assert got == {place: one for place, one in enumerate(expected) if one}


def test_what_is_remembered_of_signatures_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_MOST_KNOWN", 50)
    asked = [Asked(f"a{k}", where=bound(col("v") > k, pa.int64())) for k in range(100)]
    fits, of = Fits(asked, type_column=None, step="many"), Random(7)  # noqa: S311 - likewise
    for _ in range(20):
        batch = batch_of(of, 30, types=1)
        places, kinds = fits.of(batch)
        assert [fits.of_kind[one] for one in kinds.tolist()] == [
            one for one in fitting(asked, batch) if one
        ]
        assert len(fits.of_kind) <= 50 + 30 + 1
        assert len(places) == len(kinds)
