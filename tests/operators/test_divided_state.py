"""State divided by key: an operator keeps some keys, or is divided among several, at any moment."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from slackwater.runtime.model import Batch, GateRead, Int64Array, batch_of
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.hashes import even_groups, key_hashes, owners
from slackwater.runtime.model.plain import to_plain
from slackwater.runtime.model.state import Field, Fields, restore, save
from slackwater.runtime.operators.aggregate.written import Window
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.operators.ground.keys import keys_of
from tests.contract.test_operators import AGGREGATE, CASES, Case, any_stream, draw_stream
from tests.operators.literal import Leaves, leaves_of, run
from tests.support.told import gate_read

GROUPS = 3
CORRECTED = replace(
    AGGREGATE,
    late="correct",
    window=Window(12, 5),
    schema=AGGREGATE.schema.append(pa.field("revision", pa.int64())),
)
DIVIDED = [  # the others have one key, or each of their replicas takes all keys
    case
    for case in [*CASES, Case("corrected", CORRECTED, 1)]
    if all(case.step.traits.port_keys)
    and (case.step.traits.replica is None or case.step.traits.replica.share == "keys")
]
each_divided = pytest.mark.parametrize("case", DIVIDED, ids=str)
# A policy closes windows by the rows of all keys that it has seen.
each_by_key = pytest.mark.parametrize(
    "case", [case for case in DIVIDED if not case.closes_in_time], ids=str
)


def of_groups(case: Case, read: GateRead, groups: Collection[int]) -> GateRead:
    """Return the rows of a read whose keys are of these groups."""

    def own(port: int, rows: Batch | None) -> Batch | None:
        if rows is None:
            return None
        keys = [rows.columns[name] for name in case.step.traits.port_keys[port]]
        is_own = np.isin(owners(key_hashes(keys, len(rows)), even_groups(GROUPS)), list(groups))
        return rows.keep(is_own) if is_own.any() else None

    late, ports = (
        [own(n, rows) for n, rows in enumerate(side)] for side in (read.late, read.ports)
    )
    return replace(read, late=late, ports=ports)


def codes_of_groups(operator: Operator, groups: Collection[int]) -> Int64Array:
    keys = keys_of(operator)
    assert keys is not None
    columns = keys.columns(np.arange(len(keys)))
    return np.flatnonzero(
        np.isin(owners(key_hashes(columns, len(keys)), even_groups(GROUPS)), list(groups))
    )


def some_groups(draw: Random) -> list[int]:
    return [group for group in range(GROUPS) if draw.random() < 0.5]


@each_by_key
@any_stream
def test_it_goes_on_with_some_keys_as_if_no_other_had_ever_come(
    case: Case, data: st.DataObject, cut: Random
) -> None:
    reads = list(case.reads(draw_stream(case, data), cut))
    half, groups = cut.randrange(len(reads)), some_groups(cut)
    operator, alone = case.make(), case.make()
    run(operator, iter(reads[:half]))
    keep_keys(operator, codes_of_groups(operator, groups))
    run(alone, (of_groups(case, read, groups) for read in reads[:half]))
    keys = keys_of(operator)
    assert keys is not None
    assert codes_of_groups(operator, groups).tolist() == list(range(len(keys)))
    if cut.random() < 0.5:
        kept, operator = save(operator), case.make()
        restore(operator, kept)
    for read in reads[half:]:
        own = of_groups(case, read, groups)
        left = [leaves_of([one.work(own, now_ns=0).rows]) for one in (operator, alone)]
        assert left[0] == left[1]


@each_divided
@any_stream
def test_divided_among_several_it_makes_the_same_rows(
    case: Case, data: st.DataObject, cut: Random
) -> None:
    reads = list(case.reads(draw_stream(case, data), cut))
    half = cut.randrange(len(reads))
    whole = case.make()
    run(whole, iter(reads[:half]))
    state = pickle.dumps(save(whole))
    parts = []
    for group in range(GROUPS):
        part = case.make()
        restore(part, pickle.loads(state))  # noqa: S301
        keep_keys(part, codes_of_groups(part, [group]))
        parts.append(part)
    if case.step.traits.kind != "pattern":  # which holds rows or events, whichever are more
        assert sum(part.rows_held for part in parts) == whole.rows_held
    if case.closes_in_time:
        return  # its policy closes windows by the rows of all keys
    left: Leaves = []
    for group, part in enumerate(parts):
        left += run(part, (of_groups(case, read, [group]) for read in reads[half:]))
    assert Counter(left) == Counter(run(whole, iter(reads[half:])))


def rows_of(keys: Sequence[int], time_ns: int) -> Batch:
    names = [str(key) for key in keys]
    return batch_of(
        [time_ns] * len(keys),
        {"area": np.array(keys), "line": pa.array(names), "delay": np.full(len(keys), 0.15)},
    )


def reads_of_new_keys(case: Case, rounds: int, keys: int) -> Iterator[GateRead]:
    """Yield reads of keys that never come again, while the watermark stands still."""
    nothing: list[Batch | None] = [None] * case.ports
    for number in range(rounds):
        rows = rows_of(range(number * keys, (number + 1) * keys), 5)
        yield gate_read([rows] * case.ports, nothing, 0, 0, 0)


@each_by_key
def test_memory_is_bounded_where_old_keys_are_forgotten(case: Case) -> None:
    operator, bounded = case.make(), case.make()
    sizes: list[int] = []
    for read in reads_of_new_keys(case, rounds=30, keys=100):
        for one in (operator, bounded):
            one.work(read, now_ns=0)
        keys = keys_of(bounded)
        assert keys is not None
        keep_keys(bounded, np.arange(max(len(keys) - 100, 0), len(keys)))
        sizes.append(len(pickle.dumps(to_plain(save(bounded)))))
    assert max(sizes[10:]) < 1.2 * sizes[5]
    assert len(pickle.dumps(to_plain(save(operator)))) > 5 * sizes[-1]


def test_each_keyed_operator_is_among_those_that_are_divided() -> None:
    kinds = {case.step.traits.kind for case in DIVIDED}
    assert kinds >= {"aggregate", "join", "dedupe", "followed_by", "pattern", "process"}
    assert kinds >= {"ranking", "silence"}


def test_a_field_divided_by_none_before_it_is_refused() -> None:
    with pytest.raises(TypeError, match="field _times: no field '_codes' is before it"):
        Fields(Field("_times", by="_codes"), Field("_codes", of=""))
