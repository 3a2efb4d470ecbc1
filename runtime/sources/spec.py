"""Settings of a source: its input, its time, its promise.

Reading is I/O and lives in `ingest/`; it reaches us as a `SourceReader` that hands over Arrow
blocks. What the blocks mean (time, order, arrival, promise) is decided in `blocks.py`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from inspect import signature
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, get_args

import pyarrow as pa

from slackwater.runtime.calls import checked_fields
from slackwater.runtime.errors import SettingError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.expressions.literals import read_literal
from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.model.diverted import OnBad
from slackwater.runtime.order.policies import OrderWord, reorder_of
from slackwater.runtime.order.reorder import Reorder, SortedWithin
from slackwater.runtime.order.sequence import BySequence
from slackwater.runtime.shown import shown
from slackwater.runtime.sources.clock_columns import ClockColumns

OWN_START = "own"
"""The `start` of a source whose replay begins with its own first arrival."""


class EndOfInput:
    """End that `SourceReader.poll` returns. There is one, END_OF_INPUT."""

    def __reduce__(self) -> str:
        return "END_OF_INPUT"  # so that it stays the one when a reader travels


END_OF_INPUT = EndOfInput()
Replay = Literal["exact", "retained", "again", "none"]
LEAST_IDLE_NS = 10**6
"""Least `idle` of a live source: the clock moves its time eight times in each."""


class BadRows(NamedTuple):
    """Rows that an input could not read, in its order.

    Attributes:
        rows: columns `file` (string), `line` (int64, null if unknown), `reason` (string), `text`
            (string: the record as it came, bytes that are not UTF-8 replaced).
    """

    rows: pa.RecordBatch


class Block(NamedTuple):
    """Rows of an input with their position.

    Attributes:
        rows: the rows, or records that the input could not read.
        at: position before the first row: `open(name, at)` gives the same rows again, in blocks of
            any size. None if unknown.
    """

    rows: pa.RecordBatch | BadRows
    at: bytes | None = None


Polled: TypeAlias = Block | pa.RecordBatch | BadRows | EndOfInput | None
"""What a reader may return. Rows without a `Block` have no position."""


class Partition(NamedTuple):
    """Part of an input that is opened alone, and has its own order.

    Attributes:
        name: says which it is, and gives its rank, so that a new one shifts no other.
        rows: number of its rows, without records that cannot be read. More or fewer end the job.
            Once all are read, a `poll` without rows is its end. None if unknown.
        first_ns: event time of its first row, so that it is opened no sooner than its rows are
            wanted; None if unknown.
    """

    name: str
    rows: int | None = None
    first_ns: int | None = None


class SourceReader(Protocol):
    """An open input. Called from one thread.

    One of an input with positions may have `ack(at)`: rows before that position are in the newest
    three complete checkpoints, so no restore asks for them again, and the origin may drop them. It
    is called between two polls, and may be omitted: the next one says the same, and more.
    """

    def poll(self) -> Polled:
        """Return the next block; None if none is there right now, or END_OF_INPUT.

        Between blocks it may return `BadRows`, if its input has an attribute `on_bad` that is
        "skip" or "divert".

        Raises:
            IngestError: the input cannot be read; names it.
        """
        ...

    def close(self) -> None:
        """Close files and connections. Safe to call twice."""
        ...


class Input(Protocol):
    """An input that can be opened, on whichever node the plan puts it. Must pickle.

    On Ray it is read in a thread of its own, some rows ahead, so that a `poll` may wait. Attributes
    that are true say more, see `InputTraits`. One whose `replay` says that it knows positions is
    opened with `open(name, at)`: the name of a partition, "" if it has one only; and the position
    of a block; None if at the start.

    One with several partitions has `partitions()`, which returns a list of `Partition`; each is a
    writer of its source. Each is opened by name, so it needs positions too. It may have
    `first_row(name, columns)`, which returns the first row of a partition, or None. Then it is
    opened no sooner than its rows are wanted.
    """

    def describe(self) -> str:
        """Return what it is in a few words: `parquet loops/*.parquet (12 files)`."""
        ...

    def schema(self) -> pa.Schema:
        """Return the columns it has, as Arrow types of the outside world."""
        ...

    def open(self) -> SourceReader:
        """Open it for reading, from the start."""
        ...


def missing_methods(given: object) -> list[str]:
    """Return the methods of each input that an object lacks."""
    return [method for method in INPUT_METHODS if not callable(getattr(given, method, None))]


INPUT_METHODS = ("describe", "schema", "open")


@dataclass(frozen=True, kw_only=True)
class InputTraits:
    """Traits of an input, by its attributes of these names, or as its `traits`.

    Attributes:
        is_history: all of it is there from the start, and it can be opened again. Others may be
            live: their rows arrive when they are read.
        reads_inline: whether it never waits, so the slot reads it, and no thread ahead of it.
        wakes: whether it ends the sleep of its slot when it has something.
        is_named: its errors name its source already.
        blocks_stay: whether it never writes again where a block lies that it has returned. Blocks
            of other inputs are copied.
        diverts: its `on_bad` is "divert": records that it cannot read leave by a stream.
        has_partitions: whether it has a method `partitions`.
        shows_first_rows: whether it has a method `first_row`.
        grows: partitions may appear while it is read.
        most_open: most partitions that are open at once. The one whose rows are wanted last is
            closed for another, and opened again at its position. None if all may be open.
        ends_with_driver: its rows end with the process that made it, which submits the flow.
        keeps_offsets: whether another process goes on after its rows nevertheless.
        compares_clocks: whether its rows have offsets of a clock that it compares while it reads,
            so that rows that come again have others.
        says_replay: whether the input itself says its `replay`.
        replay: how a restored source reads on. "exact": at a position, the same rows whenever it is
            opened. "retained": at a position, while the origin has the rows. "again": from the
            start; as many rows as were read are omitted. "none": not at all.
        skips_spooled: whether it can pass over what was spooled, of an input that is read once: its
            blocks have positions, and `open(name, at)` is given that of the last spooled block, or
            empty bytes before the first one. None if rows are not spooled. A block is on disk when
            `poll` is called next.
    """

    is_history: bool = False
    reads_inline: bool = False
    wakes: bool = False
    is_named: bool = False
    blocks_stay: bool = False
    diverts: bool = False
    has_partitions: bool = False
    shows_first_rows: bool = False
    grows: bool = False
    most_open: int | None = None
    replay: Replay = "again"
    skips_spooled: bool = False
    says_replay: bool = False
    ends_with_driver: bool = False
    keeps_offsets: bool = False
    compares_clocks: bool = False

    def passed_on(self) -> InputTraits:
        """Return the traits that an input around this one has, too.

        The rest is of how an input is read, and where: each says that itself.
        """
        return replace(
            self,
            reads_inline=False,
            wakes=False,
            is_named=False,
            shows_first_rows=False,
        )

    @property
    def has_positions(self) -> bool:
        """Whether its blocks have positions, at which it can be opened."""
        return self.replay in ("exact", "retained")

    @property
    def takes_place(self) -> bool:
        """Whether it is opened with a name and a position."""
        return self.has_positions or self.skips_spooled


def traits_of(given: Input) -> InputTraits:
    """Return the traits of an input: its `traits`, or attributes of their names.

    Raises:
        SettingError: one is not what its type says.
    """
    whole: Any = getattr(given, "traits", None)
    if isinstance(whole, InputTraits):
        return whole
    others = (
        *("diverts", "has_partitions", "shows_first_rows", "most_open", "replay", "says_replay"),
    )
    names = [field.name for field in fields(InputTraits) if field.name not in others]
    traits: dict[str, Any] = {name: getattr(given, name, False) for name in names}
    for name, value in traits.items():
        if type(value) is not bool:
            raise SettingError(
                f"{type(given).__qualname__}.{name} is {shown(value)}; it must be True or False"
            )
    replay: Any = getattr(given, "replay", "again")
    if replay not in get_args(Replay):
        raise SettingError(
            f"{type(given).__qualname__}.replay is {shown(replay)}; it must be one of "
            f"{', '.join(map(repr, get_args(Replay)))}"
        )
    most_open: Any = getattr(given, "most_open", None)
    if most_open is not None and (type(most_open) is not int or most_open < 1):
        raise SettingError(
            f"{type(given).__qualname__}.most_open is {shown(most_open)}; it must be 1 or more, or "
            "None for all"
        )
    if traits["skips_spooled"] and replay != "none":
        raise SettingError(
            f"{type(given).__qualname__}.skips_spooled is True, and its replay is {replay!r}: only "
            "rows that are read once are spooled; omit skips_spooled, or write replay = 'none'"
        )
    return InputTraits(
        **traits,
        most_open=most_open,
        diverts=getattr(given, "on_bad", None) == "divert",
        has_partitions=getattr(given, "partitions", None) is not None,
        shows_first_rows=getattr(given, "first_row", None) is not None,
        replay=replay,
        says_replay=hasattr(given, "replay"),
    )


def opened_at(given: Input, name: str, at: bytes | None) -> SourceReader:
    """Open a partition of an input at a position; one without positions from its start."""
    return given.open(*place_of(traits_of(given), name, at))


def _takes_place(given: Input) -> bool:
    """Return whether an input's `open` takes the name of a partition and a position."""
    try:
        signature(given.open).bind("", None)
    except TypeError:
        return False
    except ValueError:  # of a method that does not tell what it takes
        pass
    return True


def place_of(traits: InputTraits, name: str, at: bytes | None) -> tuple[Any, ...]:
    """Return the arguments of `open`; none for an input without positions."""
    return (name, at) if traits.takes_place else ()


@checked_fields
@dataclass(frozen=True, kw_only=True)
class SourceSpec:
    """The settings of one source.

    Attributes:
        input: opens the reader.
        event_time: when it happened: a column (timestamp, or integer in `time_unit`), or an
            expression over columns that is one, such as `col("ts").str.to_time("%d.%m.%Y %H:%M",
            zone="Europe/Berlin")`.
        time_unit: unit of integer time columns: "ns", "us", "ms" or "s". If None, "ns", and event
            times that lie in January 1970 so, but in our days in another unit, are refused.
        arrival: the column of when it arrived, same types; the event time if None.
        speed: replay arrivals this many times faster than they were; None if as fast as
            possible, in the order of the input.
        start: arrival at which the replay begins. If None, the first of all sources of the flow
            that are replayed, so that rows arrive as they did; of a live input, its own first.
            "own": its own first, for a source recorded apart. A `datetime`, or its text such as
            "2024-05-01 08:00": that time (UTC without a zone), and earlier rows are due with it.
        writer: the column that tells the writers of this source apart (a vehicle); each
            writer's own events are in time order, or out by `disorder_ns` at most. With a
            `disorder_ns` and no `promise` no writer may be further than that after the newest
            event of all writers. None if the source is one writer.
        promise: per row, in nanoseconds whatever `time_unit` says: from this row on, the
            source sends nothing older. If None, the row's own event time (a source in order),
            or newest − disorder_ns where `out_of_order` is "sort" or "late".
        out_of_order: rule for an event that is older than the promise: "error" stop, naming it;
            "late" drop it, counted as late; "sort" hold events back for `disorder_ns` of event time
            and send them in order, and count what is older still as late; "sequence" put each
            writer's events in the order of their numbers, and give up missing ones after a timeout
            (`by_sequence` has its settings); or a policy of your own, a `Reorder`, which has its
            own disorder.
        sequence: column (integer), for "sequence", of an event's number in its writer's sequence;
            each comes one above the one before. Timeouts use `arrival`; without it by the times
            that are replayed (`speed`); without both by the clock.
        disorder_ns: how much older than the newest of all writers an event may be, for
            "error", "late" and "sort". With `promise` and a `writer`, for "error" and "late": the
            newest of its own writer.
        idle_ns: how long a writer may be silent, by `arrival` (without one, by the newest event
            time), before it is not waited for until it speaks again. The source then promises
            the least over its writers (`idle_writers.py`), unless `promise` or `disorder_ns` says
            more; what an awakened or new writer sends that is older is late at a gate, no error.
            None if any writer may always speak.
        ahead_ns: how far an event time may be ahead of the newest arrival. One that is further
            has not happened yet: it is held back, and moves neither promise nor newest, until
            an event that is right has its time (or the input ends). Without `arrival` the rows
            of a live input arrive by the clock, when they are read; of a file or a table one that
            is alone so far ahead of all before it is early (`believed.py`). None if clocks are
            right.
        clock: the columns of how far its clock is off; each event time, and what `promise` says
            of it, is corrected by them first of all (`clock.py`). None if its clock is ours.
        on_bad: rule for a row whose event time, or arrival where that is used, is null, cannot be
            computed, or lies outside the years 1823 to 2116: "error" stop, naming it; "skip" omit
            it, and count it; "divert" send it to `Stream.diverted()`. A file's reader has an
            `on_bad` of its own, for rows that it cannot read.
        retry: how often an input, or a partition of it, is opened again at its position after it
            raised, with no row in between: after 0.1 s, 0.2 s, 0.4 s and so on, at most 10 s. Then
            it ends the job. 0: at once.
        max_rows: most rows that are handed over at a time.
    """

    input: Input
    event_time: str | Expr
    time_unit: Literal["ns", "us", "ms", "s"] | None = None
    arrival: str | None = None
    speed: float | None = None
    start: datetime | str | None = None
    writer: str | None = None
    promise: Expr | None = None
    out_of_order: OrderWord | Reorder = "error"
    disorder_ns: int = 0
    idle_ns: int | None = None
    ahead_ns: int | None = None
    clock: ClockColumns | None = None
    sequence: str | None = None
    on_bad: OnBad = "error"
    retry: int = 0
    max_rows: int = 65_536

    def __post_init__(self) -> None:
        if self.speed is not None and not 0 < self.speed < float("inf"):
            raise SettingError(
                f"speed={shown(self.speed)} must be a positive number (60 replays an hour in a "
                "minute), or None for as fast as possible"
            )
        if self.start is not None and self.speed is None:
            raise SettingError(
                f"start={self.start!r} is of a replay, and the source has no speed; write "
                "speed=1.0 too, or omit start"
            )
        _ = self.start_ns
        reorder_of(self.out_of_order, self.disorder_ns)
        if self.idle_ns is not None and self.idle_ns < 1:
            raise SettingError(f"idle_ns={self.idle_ns} must be more than zero, or None for never")
        if self.goes_on_in_silence and (self.idle_ns or 0) < LEAST_IDLE_NS:
            raise SettingError(
                f"idle of {self.idle_ns} ns is too short for a live source, whose time goes on by "
                "the clock in its silence; write '1ms' or more"
            )
        if self.ahead_ns is not None and self.ahead_ns < 0:
            raise SettingError(f"ahead_ns={self.ahead_ns} must be zero or more, or None")
        if not isinstance(self.clock, ClockColumns | None):
            raise SettingError(
                f"clock={shown(self.clock)} names no columns; write "
                "clock=sw.clocks.clock_columns('offset_ms', "
                "unit='ms'), the column of what to add to its event times"
            )
        self._check_sequence()
        self._check_partitions()
        if self.retry < 0:
            raise SettingError(f"retry={self.retry} must be zero or more")
        if self.retry and self.traits.replay == "none":
            raise SettingError(
                f"retry={self.retry} opens an input again, and {type(self.input).__qualname__} is "
                "read once (replay is 'none'); omit retry"
            )
        if self.max_rows < 1:
            raise SettingError(f"max_rows={self.max_rows} must be at least 1")

    def _check_partitions(self) -> None:
        traits, kind = self.traits, type(self.input).__qualname__
        if traits.takes_place and not _takes_place(self.input):
            trait = "skips_spooled is True" if traits.skips_spooled else None
            raise SettingError(
                f"{kind}.{trait or f'replay is {traits.replay!r}'}, so it is opened by a name and "
                "a position; "
                'write open(self, name="", at=None)'
            )
        if not traits.has_partitions:
            if traits.grows:
                raise SettingError(
                    f"{kind}.grows is True, and it has no partitions; write partitions(self), "
                    "which returns a list of them, or omit grows"
                )
            return
        if not callable(getattr(self.input, "partitions", None)):
            raise SettingError(f"{kind}.partitions is not a method; write partitions(self)")
        if not traits.has_positions:
            raise SettingError(
                f"{kind} has partitions(), and each is opened by its name "
                "and a position: write open(self, name, at), and replay = 'exact' or 'retained'"
            )
        given = {
            "speed": self.speed,
            "promise": self.promise,
            "ahead": self.ahead_ns,
            "sequence": self.sequence,
        }
        for option, value in given.items():
            if value is not None:
                raise SettingError(
                    f"{option}= is of one order of rows, and {kind} has "
                    f"partitions, each in its own order; omit {option}, or merge a source "
                    "for each partition"
                )

    def _check_sequence(self) -> None:
        if self.numbered is None:
            if self.sequence is not None:
                raise SettingError(
                    f"sequence={shown(self.sequence)} is for out_of_order='sequence'; write that "
                    "too, or omit sequence"
                )
            return
        if self.sequence is None:
            raise SettingError(
                "out_of_order='sequence' needs sequence='…', the column of an event's number in "
                "its writer's sequence"
            )
        if self.promise is None and self.ahead_ns is None:
            return
        option = "ahead" if self.promise is None else "promise"
        raise SettingError(
            f"{option}= uses event time, and out_of_order='sequence' numbers, which promises what "
            f"it has released: omit {option}"
        )

    @cached_property
    def start_ns(self) -> int | None:
        """Arrival at which the replay begins, as written; None if no time was.

        Raises:
            SettingError: `start` is not a time, or beyond 1677 to 2262.
        """
        if self.start is None or (isinstance(self.start, str) and self.start == OWN_START):
            return None
        given, time = self.start, None
        if isinstance(given, datetime) and given == given:  # noqa: PLR0124 - NaT of pandas is not
            time = given
        elif isinstance(given, str):
            with suppress(ValueError):
                time = datetime.fromisoformat(given)
        if time is None:
            raise SettingError(
                f"start={shown(given)} is not a time; write start='2024-05-01 08:00:00', or "
                "start='own' to begin with the first arrival of this source"
            )
        start_ns = int(read_literal(time)[0])
        if not START_NS < start_ns < END_NS:
            raise SettingError(
                f"start={str(time)!r} is beyond the times that nanoseconds hold, 1677-09-21 to "
                "2262-04-11; write one between, or omit start"
            )
        return start_ns

    @property
    def shares_beginning(self) -> bool:
        """Whether its replay begins with those of other sources of the flow."""
        return self.speed is not None and self.start is None and self.is_history

    @cached_property
    def time_column(self) -> str:
        """Name of its event times: a column, or the text of an expression."""
        return str(self.event_time)

    def time_type(self, schema: pa.Schema) -> pa.DataType:
        """Return the type of its event times, over the inside schema of its input.

        Raises:
            ColumnError, TypeMismatch: an expression does not fit the columns.
        """
        if isinstance(self.event_time, Expr):
            return self.event_time.type_in(schema, step="event_time")
        return schema.field(self.event_time).type

    @property
    def computes_time(self) -> bool:
        """Whether its event times are an expression, and no column."""
        return isinstance(self.event_time, Expr)

    @property
    def diverts_unreadable(self) -> bool:
        """Whether records that its input cannot read leave by a stream of their own."""
        return self.traits.diverts

    @property
    def diverts(self) -> bool:
        """Whether rows that cannot be used leave by a stream of their own."""
        return self.on_bad == "divert" or self.diverts_unreadable

    @cached_property
    def traits(self) -> InputTraits:
        """Traits of its input."""
        return traits_of(self.input)

    @property
    def has_writers(self) -> bool:
        """Whether its rows say which writer they are of: a column's, or a partition."""
        return self.writer is not None or self.traits.has_partitions

    def roles(self, *, uses_arrival: bool) -> dict[str, str]:
        """Return {column on which order depends: its role}; such a column has no nulls.

        Args:
            uses_arrival: whether arrivals are read.
        """
        roles: dict[str | None, str] = {  # of a column that has two, the last one here counts
            **dict.fromkeys(() if self.clock is None else self.clock.names, "clock"),
            self.sequence: "sequence",
            self.writer: "writer",
            self.arrival if uses_arrival else None: "arrival",
            self.time_column: "event time",
        }
        return {name: role for name, role in roles.items() if name is not None}

    @property
    def row_fields(self) -> frozenset[str]:
        """Fields (`ROW_FIELDS`) that its settings give its rows; arrivals are told if asked for."""
        return frozenset({"writers"} if self.has_writers else ())

    @property
    def may_be_late(self) -> bool:
        """Whether rows may leave that are older than its promise."""
        may_join = self.idle_ns is not None or self.flags_silent or self.traits.grows
        return may_join or self.reorder.passes_late

    @property
    def is_history(self) -> bool:
        """Whether all of its input is there from the start; see `InputTraits`."""
        return self.traits.is_history

    @property
    def arrives_by_clock(self) -> bool:
        """Whether rows arrive when they are read: of a live input that says nothing else."""
        return self.arrival is None and self.speed is None and not self.is_history

    @property
    def goes_on_in_silence(self) -> bool:
        """Whether event time goes on by the clock while it is silent: live, with `idle`.

        Not where it holds rows, for these would be late when they leave; rows that are sorted
        within a disorder leave when it falls silent.
        """
        sorts = self.reorder.sorts and not isinstance(self.reorder, SortedWithin)
        holds_rows = self.numbered is not None or sorts or self.ahead_ns is not None
        return (
            self.idle_ns is not None
            and self.speed is None
            and not self.is_history
            and not holds_rows
        )

    @property
    def is_backlog(self) -> bool:
        """Whether it reads history as fast as possible."""
        return self.speed is None and self.is_history

    @property
    def numbered(self) -> BySequence | None:
        """How rows are put in order by their numbers; None if they are not."""
        reorder = self.reorder
        return reorder if isinstance(reorder, BySequence) else None

    @property
    def goes_by_clock(self) -> bool:
        """Whether waits end by the slot's clock, without arrivals or pace."""
        return self.numbered is not None and self.arrival is None and self.speed is None

    @property
    def flags_silent(self) -> bool:
        """Whether it promises for writers that have timed out, so that they may come late."""
        numbered = self.numbered
        return numbered is not None and self.writer is not None and not numbered.merge

    @property
    def reorder(self) -> Reorder:
        """Policy for rows that are out of order."""
        return reorder_of(self.out_of_order, self.disorder_ns)

    @property
    def promises_nothing(self) -> bool:
        """Whether any writer may speak again, of any time, until the input ends."""
        return self._promises_by_writers and self.idle_ns is None

    @property
    def _promises_by_writers(self) -> bool:
        """Whether nothing but what each writer has sent says what may follow."""
        return self.writer is not None and self.promise is None and self.reorder.longest_ns == 0

    @property
    def most_disorder_ns(self) -> int | None:
        """Most disorder of the rows that leave; None if nothing surely bounds it."""
        if self.promise is not None or self.idle_ns is not None or self.ahead_ns is not None:
            return None
        reorder = self.reorder
        if reorder.passes_late and not reorder.refuses:
            return None
        if reorder.sorts:
            return 0
        return None if self.has_writers else reorder.longest_ns

    @property
    def waits_for_each_writer(self) -> bool:
        """Whether it promises the least over its writers, idle ones apart."""
        return self._promises_by_writers and self.idle_ns is not None

    @property
    def uses_arrival(self) -> bool:
        """Whether what becomes of a row hangs on when it arrived."""
        return (
            self.speed is not None
            or self.ahead_ns is not None
            or self.waits_for_each_writer
            or self.numbered is not None
        )
