"""Fields of rows on the wire, each as `ROW_FIELDS` says, and how far arrivals have come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.actors.wire.extras import FIRST_FLAG
from slackwater.actors.wire.frames import HEADER
from slackwater.runtime.errors import FrameError
from slackwater.runtime.model import Arrived, Batch, ReadTag, concat_batches
from slackwater.runtime.model.batch import ROW_FIELDS, RowFields
from slackwater.runtime.model.row_marks import all_bits
from tests.actors.wire.test_frames import INT64S, assert_same, batch_with, changed, codec
from tests.support.told import message_of

SUBSETS = st.sets(st.sampled_from(sorted(ROW_FIELDS)))
FLAGS = {name: FIRST_FLAG << place for place, name in enumerate(ROW_FIELDS)}


@st.composite
def fields_of(draw: st.DrawFn, names: set[str], rows: int) -> RowFields:
    """Values of these fields for so many rows, any that the field allows."""
    made: RowFields = {}
    for name in names:
        field = ROW_FIELDS[name]
        values = INT64S if field.most is None else st.integers(0, field.most())
        size = rows * field.width
        drawn = np.array(draw(st.lists(values, min_size=size, max_size=size)), field.dtype)
        made[name] = drawn.reshape(rows, field.width) if field.width > 1 else drawn
    return made


@given(carried=SUBSETS, rows=st.integers(0, 70), tag=st.booleans(), data=st.data())
def test_any_fields_survive_the_wire_and_cuts_and_joins(
    carried: set[str], rows: int, tag: bool, data: st.DataObject
) -> None:
    names = {
        name for name in carried if ROW_FIELDS[name].absent is None or data.draw(st.booleans())
    }
    sent = batch_with(rows).with_(**data.draw(fields_of(names, rows)))
    cuts = sorted(data.draw(st.lists(st.integers(0, rows), max_size=3)))
    arrived = data.draw(st.none() | st.builds(Arrived, INT64S, INT64S, INT64S))
    read = ReadTag(3, rows, 0, 8) if tag else None
    both = codec(row_fields=carried)
    parts: list[Batch] = []
    for start, stop in zip([0, *cuts], [*cuts, rows], strict=True):
        message = message_of(sent.slice(start, stop), 5, 6, read, arrived)
        got, _ = both.decode(both.encode(message, sent_at_ns=7))
        assert (got.tag, got.progress.arrived) == (read, arrived)
        assert got.batch is not None
        parts.append(got.batch)
    assert_same(concat_batches(parts), sent)


def test_a_field_that_rows_may_lack_is_filled_up_beside_rows_that_have_it() -> None:
    both = codec(row_fields={"marks"})
    marked = batch_with(3).with_(marks=np.array([0, 2, 1], np.uint8))
    frames = [both.encode(message_of(one, 0, 0), sent_at_ns=0) for one in (batch_with(2), marked)]
    got = [both.decode(frame)[0].batch for frame in frames]
    whole = concat_batches([one for one in got if one is not None])
    assert whole.marks is not None
    assert whole.marks.tolist() == [0, 0, 0, 2, 1]


def test_a_channel_sends_no_field_that_it_does_not_carry() -> None:
    sent = batch_with(3).with_(writers=np.arange(3), marks=np.ones(3, np.uint8))
    plain = codec().encode(message_of(batch_with(3), 0, 0), sent_at_ns=0)
    assert codec().encode(message_of(sent, 0, 0), sent_at_ns=0) == plain


@pytest.mark.parametrize("rows", [1, 8, 9, 1_000])
def test_a_field_costs_no_byte_where_no_row_has_it(rows: int) -> None:
    plain = batch_with(rows)
    some = plain.with_(marks=(np.arange(rows) % 3 == 0).astype(np.uint8))
    frames = [
        codec(row_fields=names).encode(message_of(batch, 5, 6), sent_at_ns=7)
        for names, batch in ((set(), plain), ({"marks"}, plain), ({"marks"}, some))
    ]
    sizes = [len(frame) - len(frames[0]) for frame in frames]
    assert sizes == [0, 0, (rows + 7) // 8 * 8]


WRONG: dict[str, list[Any]] = {
    "arrivals": [None, np.zeros((3, 1), np.int64), np.zeros((3, 2)), np.zeros(3, np.int64)],
    "writers": [None, np.zeros(2, np.int64), np.zeros((3, 2), np.int64), [1, 2, 3]],
    "marks": [np.zeros(3, np.int64), np.zeros(4, np.uint8)],
}


@pytest.mark.parametrize(
    ("name", "values"), [(n, one) for n, every in WRONG.items() for one in every]
)
def test_rows_without_a_sound_field_that_their_channel_carries_are_not_sent(
    name: str, values: Any
) -> None:
    batch = batch_with(3)
    batch.fields = {} if values is None else {name: values}
    with pytest.raises(FrameError, match=f"'{name}' is to travel as a NumPy array of 3"):
        codec(row_fields={name}).encode(message_of(batch, 0, 0), sent_at_ns=0)


@pytest.mark.parametrize("name", ["writers", "arrivals"])
def test_the_ends_of_a_channel_must_agree_on_its_fields(name: str) -> None:
    with pytest.raises(FrameError, match=name):
        codec().check_hello(codec(row_fields={name}).encode_hello())


@pytest.mark.parametrize("name", ["writers", "marks", "arrivals"])
def test_fields_that_lie_are_refused(name: str) -> None:
    field, rows = ROW_FIELDS[name], 9
    shape = (rows, field.width) if field.width > 1 else (rows,)
    sent = batch_with(rows).with_(**{name: np.ones(shape, field.dtype)})
    frame = codec(row_fields={name}).encode(message_of(sent, 0, 0), sent_at_ns=0)
    body = len(frame) - HEADER.size
    with pytest.raises(FrameError, match=f"no room for {name} of"):
        codec(row_fields={name}).decode(changed(frame, rows=2**40))
    for wrong in (
        changed(frame, flags=1),  # it has no such field
        changed(frame, flags=1 | sum(FLAGS.values())),  # it has others, too
        changed(frame, flags=FLAGS[name]),  # it has no rows
        changed(frame, rows=2**62),
        changed(frame[: HEADER.size + 8], size=8),
        changed(frame[:-8], size=body - 8),
        changed(frame + b"\0" * 8, size=body + 8),
    ):
        with pytest.raises(FrameError):
            codec(row_fields={name}).decode(wrong)
    none = codec(row_fields={name}).encode(message_of(None, 0, 0), sent_at_ns=0)
    with pytest.raises(FrameError, match="without a batch"):
        codec(row_fields={name}).decode(changed(none, flags=FLAGS[name]))


def test_a_value_above_the_largest_of_its_field_is_refused() -> None:
    both = codec(row_fields={"marks"})
    sent = batch_with(9).with_(marks=np.full(9, all_bits() + 1, np.uint8))
    frame = both.encode(message_of(sent, 0, 0), sent_at_ns=0)
    with pytest.raises(FrameError, match="unknown marks"):
        both.decode(frame)
