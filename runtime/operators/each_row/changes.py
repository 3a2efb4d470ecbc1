"""`changes` reads a changelog, and sinks show the kinds of their rows.

```
op  id  n      changes("op")         id  n              what a sink writes
c   7   1   ─▶ id  n                 7   1  insert      id  n  change
u   7   2      with marks      …     7   1  old half ─▶ 7   1  insert
                                     7   2  update      7   2  update
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import (
    DuplicateName,
    FlowError,
    OperatorError,
    SettingError,
    TypeMismatch,
)
from slackwater.runtime.model import Batch, BoolArray, Int64Array
from slackwater.runtime.model.nullable import valid_bits
from slackwater.runtime.model.ranges import starts_of_runs
from slackwater.runtime.model.row_marks import (
    CHANGE_BITS,
    CHANGES,
    RETRACTED,
    REVISED,
    Marks,
    are_old_halves,
    change_words,
)
from slackwater.runtime.model.schema import column_of_arrow, inside_type, is_text
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import PlainStateless
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.operators.ground.user_code import sample_of
from slackwater.runtime.plan.changes import carried_by
from slackwater.runtime.plan.step import EachRowStep, Step
from slackwater.runtime.plan.traits import MARKS, ChangeKind, StepTraits, each_row
from slackwater.runtime.shown import shown

CHANGE = "change"
"""Column of a sink with the kind of a row."""
Kind = Literal["insert", "update", "old", "new", "delete"]
"""Kind of a row of a changelog: "update" lacks the row that it replaces; else that is the row
before, "old", and the update is "new"."""
_BITS = {kind: CHANGES["update" if kind == "new" else kind] for kind in get_args(Kind)}
_KINDS: dict[Kind, ChangeKind] = {
    "insert": "inserts",
    "update": "updates",
    "old": "updates",
    "new": "updates",
    "delete": "deletions",
}
_SHOWN = {word: _KINDS[word] for word in ("insert", "update", "delete")}
_WORDS: dict[str, Kind] = {
    "insert": "insert",
    "update": "update",
    "delete": "delete",
    "+I": "insert",
    "-U": "old",
    "+U": "new",
    "-D": "delete",
    "c": "insert",
    "r": "insert",
    "u": "update",
    "d": "delete",
}
"""Words of ours, of Flink and of Debezium."""


@dataclass(frozen=True, kw_only=True)
class ChangesStep(EachRowStep):
    """A column with words for kinds becomes the kinds of rows, and goes."""

    column: str
    words: Mapping[str, Kind]
    """{word in the column: kind}."""
    upserts: bool = False
    """Whether updates come without the row that they replace."""
    images: tuple[str, str] | None = None
    """Columns with a row before its change, and after, as structs; None if rows have columns."""

    @cached_property
    def traits(self) -> StepTraits:
        """Traits of a step that makes changes of inserts."""
        return replace(
            each_row("changelog"),
            takes_changes="none",
            changes="upserts" if self.upserts else "retractions",
            kinds=frozenset(_KINDS[kind] for kind in self.words.values()),
            gives_fields=MARKS,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return {self.column, *self.images} if self.images else needed | {self.column}

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        of = f", rows in {' and '.join(self.images)}" if self.images else ""
        yield f"reads    kinds of changes in {self.column}{of}"


class ChangesMachine(PlainStateless):
    """The machine of a `ChangesStep`."""

    def __init__(self, step: ChangesStep) -> None:
        self._step = step

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        marks = self._marks(batch)
        if self._step.images:
            return self._of_images(batch, marks, *self._step.images)
        is_old, is_new = are_old_halves(marks), (marks & CHANGE_BITS) == REVISED.bit
        if len(lone := _lone_halves(is_old, is_new)):
            self._refuse_lone(batch, int(lone[0]))
        if not self._step.upserts and len(lone := _lone_halves(is_new[::-1], is_old[::-1])):
            self._refuse_update(batch, len(batch) - 1 - int(lone[0]))
        columns = {n: each for n, each in batch.columns.items() if n != self._step.column}
        return batch.with_(columns=columns, marks=marks if marks.any() else None)

    def _marks(self, batch: Batch) -> Marks:
        """Return the kind of each row."""
        words = batch.columns[self._step.column]
        assert isinstance(words, pa.Array), "it is text"
        encoded = words.dictionary_encode()
        known = [_BITS.get(self._kind(word), 255) for word in encoded.dictionary.to_pylist()]
        codes = encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
        marks: Marks = np.array([*known, 255], dtype=np.uint8).take(codes)
        if (marks == 255).any():
            self._refuse(batch, marks)
        return marks

    def _of_images(self, batch: Batch, kinds: Marks, before: str, after: str) -> Batch:
        """Return a row for each image of a change, the old one first."""
        images: list[pa.Array] = [batch.columns[name] for name in (before, after)]
        is_old = (kinds & RETRACTED.bit) != 0
        is_update = ~is_old & ((kinds & REVISED.bit) != 0)
        has_old = is_old | (is_update & (not self._step.upserts))
        needs = zip((before, after), images, (has_old, ~is_old), strict=True)
        for name, image, is_needed in needs:
            self._refuse_lacking(batch, name, is_needed & ~valid_bits(image))
        copies = has_old.astype(np.int64) + ~is_old
        of_row = np.arange(len(batch)).repeat(copies)
        chosen = of_row + len(batch)  # the new image, after all old ones
        marks = kinds.take(of_row)
        first = (copies.cumsum() - copies)[has_old]
        chosen[first] -= len(batch)
        marks[first] = np.where(is_old[has_old], RETRACTED.bit, RETRACTED.bit | REVISED.bit)
        fields = zip(self._step.schema.names, *(image.flatten() for image in images), strict=True)
        columns = {
            name: column_of_arrow(pa.concat_arrays([old, new]).take(pa.array(chosen)))
            for name, old, new in fields
        }
        return batch.take(of_row).with_(columns=columns, marks=marks if marks.any() else None)

    def _refuse_lacking(self, batch: Batch, name: str, is_lacking: BoolArray) -> None:
        if not is_lacking.any():
            return
        at = int(is_lacking.argmax())
        raise OperatorError(
            f"step {self._step.name!r}: {name!r} is null, and its change needs that row; have the "
            "database log whole rows, or write upserts=True, and .to_table(…) by the key after it\n"
            f"{sample_of(batch, at, at + 1)}"
        )

    def _refuse_update(self, batch: Batch, at: int) -> None:
        """Raise the error of an update that lacks its old row."""
        word = batch.columns[self._step.column][at : at + 1].tolist()[0]
        raise OperatorError(
            f"step {self._step.name!r}: {self._step.column!r} is {shown(word)}, an update without "
            "the row that it replaces; write upserts=True, and .to_table(…) by its key after it\n"
            f"{sample_of(batch, max(at - 1, 0), at + 1)}"
        )

    def _refuse_lone(self, batch: Batch, at: int) -> None:
        """Raise the error of an old row that no new row replaces."""
        words = batch.columns[self._step.column][at : at + 2].tolist()
        raise OperatorError(
            f"step {self._step.name!r}: a row is old ({shown(words[0])}), and the next one, "
            f"{shown(words[1])}, does not replace it; give both halves of an update the same event "
            "time and one writer, one after the other, or name a row that goes for good a deletion "
            f"(-D)\n{sample_of(batch, at, at + 2)}"
        )

    def _kind(self, word: str) -> str:
        kind = self._step.words.get(word, "")
        is_alone = not self._step.upserts and self._step.images is None
        return "" if kind == "update" and is_alone else kind

    def _refuse(self, batch: Batch, marks: npt.NDArray[np.uint8]) -> None:
        """Raise the error of the first row whose kind is not known."""
        at = int((marks == 255).argmax())
        words = batch.columns[self._step.column]
        word = words.tolist()[at]
        who = f"step {self._step.name!r}: {self._step.column!r} is {shown(word)}"
        if self._step.words.get(word) == "update":
            self._refuse_update(batch, at)
        raise OperatorError(
            f"{who}, which names no change; there are {', '.join(self._step.words)}; for "
            f"others write words={{'…': 'insert'}}\n{sample_of(batch, at, at + 1)}"
        )


def _lone_halves(is_half: BoolArray, is_other: BoolArray) -> Int64Array:
    """Return places of halves that lack the other, the last of their runs; ascending.

    A run of halves is followed by as many others, as far as rows are here: a run at the end may be
    followed by the next batch.
    """
    begins = starts_of_runs(is_half.astype(np.int64))
    ends = np.append(begins[1:], len(is_half))
    of_half = is_half.take(begins) & (ends < len(is_half))
    last, length = ends[of_half], (ends - begins)[of_half]
    others = np.append(0, is_other.cumsum())
    until = np.minimum(last + length, len(is_half))
    lone: Int64Array = last[others.take(until) - others.take(last) < until - last] - 1
    return lone


@dataclass(frozen=True, kw_only=True)
class ShownChangesStep(EachRowStep):
    """Kinds of rows become a column, and old halves go: made by `sink` alone."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return each_row("shown_changes", may_drop=False, reads_fields=MARKS)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return needed - {CHANGE}

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        kinds = carried_by(steps, self.inputs[0]).kinds
        words = [word for word, kind in _SHOWN.items() if kind in kinds]
        *firsts, last = words
        text = f"{', '.join(firsts)} or {last}" if firsts else last
        replaced = "; a replaced row has no row of its own" if "updates" in kinds else ""
        yield f"shows    {CHANGE} = {text}{replaced}"


class ShownChangesMachine(PlainStateless):
    """The machine of a `ShownChangesStep`."""

    def __init__(self, step: ShownChangesStep) -> None:
        del step

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        marks = batch.marks
        if marks is not None and (is_old := are_old_halves(marks)).any():
            batch = batch.keep(~is_old)
        words = change_words(batch.marks, len(batch))
        return Batch.like(batch, {**batch.columns, CHANGE: words})


class Changing(AnyStream):
    """Streams can be read as changelogs, and shown as such."""

    @checked_call
    def changes(
        self,
        kind: str,
        *,
        words: Mapping[str, Kind] | None = None,
        upserts: bool = False,
        images: tuple[str, str] | None = None,
        name: str | None = None,
    ) -> Self:
        """Read rows as changes: a column says what each row does; it goes.

        A row that is deleted or replaced must come with all its values, as it was inserted; with
        `upserts` its key is enough.

        Args:
            kind: the column, of text.
            words: {word in it: "insert", "delete", "old", "new" or "update"}; "old" is a row that
                the next row, "new", replaces; "update" comes without it. None if they are those of
                Flink (+I, -U, +U, -D) or Debezium (c, r, u, d), or insert, update, delete.
            upserts: whether updates come without the row that they replace; then `to_table` is
                the next step.
            images: columns with the row before its change and after it, structs of the same
                fields, as Debezium has them: ("before", "after"). Their fields are the columns
                that leave. None if rows have columns of their own.
            name: the name of the step.

        Raises:
            ColumnError, TypeMismatch: a column is not there; the kind is not text, or images are
                not structs of the same fields.
            FlowError: rows of this stream change already.
            SettingError: there are no words, or one has a kind that does not exist.
        """
        name = self._step_name("changes", name)
        if not is_text(kind_type := checks.column_type(self.schema, kind, step=name)):
            raise TypeMismatch(
                f"step {name!r}: column {kind!r} says what rows do, and is {kind_type}; it must be "
                f"text: write .with_columns({kind}=sw.col({kind!r}).cast('string')) before"
            )
        known = _WORDS if words is None else dict(words)
        if not known:
            raise SettingError(
                f"step {name!r}: words= is empty, so no row would be known; omit it for +I, -U, +U "
                "and others, or write {'word': 'insert'}"
            )
        if unknown := [other for other in known.values() if other not in _BITS]:
            raise SettingError(
                f"step {name!r}: words= has a kind {shown(unknown[0])}; there are "
                f"{', '.join(_BITS)}"
            )
        if len(self.schema) == 1:
            raise FlowError(
                f"step {name!r}: the stream has no column beside {kind!r}; give it those of rows"
            )
        schema = pa.schema([field for field in self.schema if field.name != kind])
        return self._add(
            ChangesStep(
                name=name,
                inputs=self._in,
                schema=schema if images is None else _of_images(self.schema, images, step=name),
                column=kind,
                images=images,
                words=known,
                upserts=upserts,
            )
        )

    def _with_kinds(self, sink: str) -> Self:
        """Return the stream as a sink shows it: with kinds, if its rows change."""
        if carried_by(self.flow.steps, self.name).changes != "retractions":
            return self
        if CHANGE in self.columns:
            raise DuplicateName(
                f"sink {sink!r}: its rows change, and {CHANGE!r} is the column that says how; "
                f".rename({{{CHANGE!r}: …}}) before"
            )
        return self._add(
            ShownChangesStep(
                name=self.flow.name_for("changes", None),
                inputs=self._in,
                schema=self.schema.append(pa.field(CHANGE, pa.string())),
            )
        )


def _of_images(schema: pa.Schema, images: tuple[str, str], *, step: str) -> pa.Schema:
    """Return the columns of rows in two columns of structs.

    Raises:
        ColumnError, TypeMismatch: they are not there, or not structs of the same fields.
    """
    before, after = (checks.column_type(schema, name, step=step) for name in images)
    if not pa.types.is_struct(before) or before != after:
        raise TypeMismatch(
            f"step {step!r}: images {images[0]!r} and {images[1]!r} are {before} and {after}; both "
            "must be structs with the same fields, in one order"
        )
    return pa.schema([(field.name, inside_type(field.name, field.type)) for field in after])
