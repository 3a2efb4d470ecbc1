"""Whole states compared: snapshots, and the machines themselves, attribute by attribute."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.model.plain import to_plain
from slackwater.runtime.model.state import save
from slackwater.runtime.operators.ground.of_keys import OfKeys

PLAIN = frozenset({type(None), bool, int, float, str, bytes})
COMPARED = PLAIN - {float}
"""Most of a state is these: they are compared without a look at what kind they are."""


def canonical(state: Any) -> Any:
    """Return a snapshot in a form that `==` compares: arrays as their type and values.

    Anything but plain values, NumPy and Arrow arrays does not belong in it.
    """
    if type(state) in PLAIN:
        return state
    match state:
        case np.ndarray():
            assert state.dtype != object, "NumPy arrays of Python objects are no plain values"
            return state.dtype.str, state.tobytes()
        case pa.Array():
            return str(state.type), state.to_pylist()
        case dict():
            return {key: canonical(own) for key, own in state.items()}
        case list() | tuple():
            return type(state).__name__, [canonical(own) for own in state]
    raise AssertionError(f"{type(state)} in a snapshot")


# Attributes that may differ after a restore, since they say again what others say, or where it
# lies; each with what to compare in their place. Who adds an attribute to a machine finds it
# compared, unless it is put here with its reason.
_Seen = Callable[[Any], Any]


def _nothing(_: Any) -> None:
    return None


def _held(lane: Any) -> Any:
    return [canonical(rows) for rows in _rows_of(lane.held())]


def _rows_of(batches: Any) -> list[Any]:
    rows: list[Any] = []
    for batch in batches:
        columns = {
            n: c.to_pylist() if isinstance(c, pa.Array) else c.tolist()
            for n, c in batch.columns.items()
        }
        for at in range(len(batch)):
            writer = None if batch.writers is None else int(batch.writers[at])
            own = [columns[name][at] for name in columns]
            marks = 0 if batch.marks is None else int(batch.marks[at])
            stimulus_ns = int(batch.stimulus_time_ns[at])
            rows.append([int(batch.event_time_ns[at]), writer, repr(own), stimulus_ns, marks])
    return rows


def _rest_of_block(source: Any) -> Any:
    rest, reading = source._block_left, canonical(to_plain(source._reading))
    if rest is None:
        return reading
    return [reading, _rows_of([rest.pop("batch")]), canonical(rest)]


def _lists(matcher: Any) -> Any:
    made = matcher._made_chains
    chains, matcher._made_chains = matcher._chains, made  # a look changes nothing
    return [
        (
            *(own.copies, own.fit, own.after, own.watched, own.used),
            {place: (several.at, several.label) for place, several in own.several.items()},
        )
        for own in chains
    ]


REASONS: dict[tuple[str, str], tuple[str, _Seen]] = {
    ("FifoLane", "_chunks"): ("rows that left are cut off", _held),
    ("FifoLane", "_start"): ("rows that left are cut off", _nothing),
    ("GateIntake", "work"): ("of the last take", _nothing),
    ("SplitIntake", "work"): ("of the last take", _nothing),
    ("GateIntake", "rows_worked"): ("of the last take", _nothing),
    ("SplitIntake", "rows_worked"): ("of the last take", _nothing),
    ("StageMachine", "next"): ("polls come at once", _nothing),
    ("SourceNode", "looks"): ("of the slot, which saves them", _nothing),
    ("Polls", "nothing_ns"): ("polled at once", _nothing),
    ("Polls", "_last_rows_ns"): ("polled at once", _nothing),
    ("Polls", "caught_up_ns"): ("lengths of slices, and no result, depend on it", _nothing),
    ("Slot", "_ripe"): ("in order of coming", lambda slot: {
        stage: sorted(ripe) for stage, ripe in slot._ripe.items() if ripe}),
    ("PathQueues", "_heads"): ("entries out of date are left out", lambda queues:
                                  queues.earliest_stimulus_ns()),
    ("Slot", "_ready"): ("next work of the stages, which are compared", _nothing),
    ("StageMachine", "on_next"): ("a method of the slot's", _nothing),
    ("Slot", "_has_requested"): ("a new one asks again, before its first slice", _nothing),
    ("Slot", "_requested"): ("of the stages, which are compared", _nothing),
    ("StageMachine", "rows_released"): ("of the last slice", _nothing),
    ("WaitLog", "_by_next"): ("rows that left are cut off", lambda log: canonical(save(log))),
    ("WaitLog", "_by_coming"): ("messages that have gone are left out", _nothing),
    ("WaitLog", "_number"): ("breaks ties in a heap", _nothing),
    ("SourceNode", "_block"): ("rows handed over are cut off", _rest_of_block),
    ("SourceNode", "_plain"): ("rows handed over are cut off", lambda source:
                                  None if source._block_left is None
                                  else source._plain is source._block),
    ("SourceNode", "_position"): ("rows handed over are cut off", _nothing),
    ("BlockReader", "_newest_ns"): ("at the row handed over; compared with the block", _nothing),
    ("PromiseLine", "_reached_ns"): ("at the row handed over; compared with the block", _nothing),
    ("PartitionReader", "rows"): ("at the row handed over; compared with the block", _nothing),
    ("BlockReader", "_rest"): ("what the reader had read ahead", _nothing),
    ("PartitionReader", "reader"): ("opened anew, when more rows are needed", _nothing),
    **{("PartitionReader", name): ("rows since a position; compared with the block", _nothing)
       for name in ("_since", "_bad_since", "_to_skip", "_bad_to_skip")},
    ("ColumnReader", "_known"): ("where columns lie is looked up anew", _nothing),
    ("ColumnReader", "_places"): ("where columns lie is looked up anew", _nothing),
    ("FilterMachine", "_nothing"): ("a batch of no rows, made once", _nothing),
    # Operators: where rows lie, and what is looked up in them, is made anew from the rows.
    ("HeldRows", "origin"): ("positions begin anew", _nothing),
    ("HeldRows", "start"): ("positions begin anew", lambda rows: canonical(rows.snapshot())),
    ("HeldRows", "end"): ("positions begin anew", len),
    **{("HeldRows", name): ("room for more", _nothing)
       for name in ("_keys", "_times", "_stimuli", "_places", "_newest", "_marks")},
    **{("HeldColumns", name): ("room for more; the rows hold them", _nothing)
       for name in ("_numbers", "_arrays", "_capacity", "_origin", "start")},
    ("HeldColumns", "end"): ("positions begin anew", len),
    **{("JoinState", name): ("the index follows from the rows", _nothing)
       for name in ("_layout", "_oldest_ns", "_index", "_is_untidy", "_indexed", "_waiting")},
    **{(name, "_saving"): ("of a cut that is being saved", _nothing)
       for name in ("ChangingArray", "Objects", "Matchers")},
    ("OfKeys", "order"): ("replaced objects are left out", _nothing),
    **{(name, "cut"): ("of a cut that is being saved", _nothing)
       for name in ("Keyed", "KeyMatcher")},
    ("GrowableArray", "_data"): ("room for more", lambda growing: canonical(growing.values)),
    **{("HashCodes", name): ("values that a snapshot has had", _nothing)
       for name in ("_pieces",)},
    **{("IntCodes", name): ("a way to look codes up", _nothing)
       for name in ("_base", "_table", "_sparse")},
    ("Cells", "_slots"): ("a way to look cells up", _nothing),
    ("Cells", "_index"): ("a way to look cells up", len),
    ("Cells", "_bits"): ("a way to look cells up", _nothing),
    ("IntervalCells", "_newest"): ("without keys that have no open cell", lambda cells: {
        code: cell for code, cell in enumerate(cells._newest.values.tolist()) if cell >= 0}),
    ("IntervalCells", "_older"): ("of open cells", lambda cells:
                                  cells._older.values.take(cells.open_cells()).tolist()),
    ("KeyIndex", "_known"): ("a way to look codes up", _nothing),
    ("DedupeMachine", "_by_code"): ("made when late rows come", _nothing),
    ("ProcessMachine", "_due"): ("without calls that were thought better of", _nothing),
    **{("Fits", name): ("a way to look up what rows fit", _nothing)
       for name in ("_kinds_of", "_known", "_numbers", "of_kind", "_values", "_codes")},
    ("Several", "_of_label"): ("labels in another order", lambda several: sorted(
        map(repr, several._of_label.items()))),
    ("Several", "_are_single"): ("of all that has come", _nothing),
    ("Limit", "_left"): ("of the last read", _nothing),
    ("Matchers", "_begins"): ("a way to look up what events are", _nothing),
    ("WindowShedding", "_places"): ("a way to look up what events are", _nothing),
    ("Rules", "_roles"): ("a way to look up what events are", _nothing),
    ("Settings", "_roles"): ("a way to look up what events are", _nothing),
    ("Settings", "_ends_after"): ("a way to look up what events are", _nothing),
    ("ReachMatcher", "_orders"): ("of the last event", _nothing),
    ("ReachMatcher", "_made_chains"): ("made when they are asked for", _lists),
    ("WindowMatcher", "_orders"): ("of the last event", _nothing),
    ("Chain", "barred"): ("one that is too old to bar is kept until others follow", _nothing),
    ("Matchers", "_due"): ("without calls that were thought better of", _nothing),
    ("Slot", "_recent"): ("what came to it last, in words; to the new one nothing has", _nothing),
    ("Slot", "at_work"): ("whom to name if a slice never ends; none has begun", _nothing),
}  # fmt: skip


def differences(one: Any, other: Any) -> list[str]:
    """Return the paths of the attributes in which two machines differ, reasons apart."""
    return list(_differences(one, other, type(one).__name__, set()))


def _differences(one: Any, other: Any, path: str, seen: set[tuple[int, int]]) -> Iterator[str]:
    if one is other or (type(one) in COMPARED and type(one) is type(other) and one == other):
        return
    if (id(one), id(other)) in seen:
        return
    if type(one) is not type(other):
        yield f"{path}: {type(one).__name__} and {type(other).__name__}"
        return
    is_same = _leaf(one, other)
    if is_same is not None:
        if not is_same:
            yield f"{path}: {one!r} and {other!r}"
        return
    seen.add((id(one), id(other)))
    if isinstance(one, dict) and _keys(one) != _keys(other):
        yield f"{path}: keys {list(one)} and {list(other)}"
    elif isinstance(one, dict | list | tuple | deque):
        if len(one) != len(other):
            yield f"{path}: {len(one)} and {len(other)} of them"
            return
        for key in one if isinstance(one, dict) else range(len(one)):
            yield from _differences(one[key], other[key], f"{path}[{key!r}]", seen)
    else:
        yield from _of_objects(one, other, path, seen)


def _keys(of: dict[Any, Any]) -> list[Any]:
    """Return the keys in their order; objects that changed while they were saved come first."""
    return sorted(of) if isinstance(of, OfKeys) else list(of)


def _leaf(one: Any, other: Any) -> bool | None:  # noqa: PLR0911 - one for each kind
    """Return whether two values without attributes of their own are the same; None: no such."""
    match one:
        case type() | FunctionType() | MethodType():
            return True
        case np.ndarray() | memoryview():
            return bool(canonical(np.asarray(one)) == canonical(np.asarray(other)))
        case pa.Array() | pa.Schema() | pa.DataType() | pa.Field():
            return bool(one.equals(other))
        case float():
            return repr(one) == repr(other)  # NaN is NaN
        case None | bool() | int() | str() | bytes() | set() | frozenset():
            return bool(one == other)
        case np.generic() | np.dtype() | np.ufunc():
            return bool(one == other)
    return None


def _of_objects(one: Any, other: Any, path: str, seen: set[tuple[int, int]]) -> Iterator[str]:
    for name in sorted(attributes(one) | attributes(other)):
        where = f"{path}.{name}"
        reason = _reason(type(one), name)
        if reason is not None:
            own, its = reason[1](one), reason[1](other)
            if own != its:
                yield f"{where}: {own!r} and {its!r}"
            continue
        if not hasattr(one, name) or not hasattr(other, name):
            yield f"{where}: only one has it"
            continue
        yield from _differences(getattr(one, name), getattr(other, name), where, seen)


@cache
def _reason(kind: type, name: str) -> tuple[str, _Seen] | None:
    """Return why an attribute may differ, and what to compare in its place."""
    keys = ((base.__name__, name) for base in kind.__mro__)
    return next((REASONS[key] for key in keys if key in REASONS), None)


def attributes(one: Any) -> set[str]:
    """Return the names of what an object itself keeps, in slots or not."""
    return _declared(type(one)).union(
        name for name in getattr(one, "__dict__", ()) if not name.startswith("__")
    )


@cache
def _declared(kind: type) -> frozenset[str]:
    """Return the names that a class declares for its objects, as slots or fields."""
    names: set[str] = set()
    for base in kind.__mro__:
        slots = getattr(base, "__slots__", ())
        names |= {slots} if isinstance(slots, str) else set(slots)
    if is_dataclass(kind):
        names |= {field.name for field in fields(kind)}
    return frozenset(name for name in names if not name.startswith("__"))
