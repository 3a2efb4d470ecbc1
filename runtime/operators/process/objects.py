"""The user's objects, one for each key, and what is kept beside each."""

from __future__ import annotations

import copy
import struct
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.model.copies import copied_value
from slackwater.runtime.model.divided import StayingNumbers
from slackwater.runtime.model.later import Later, LaterOfMany
from slackwater.runtime.model.plain import AS_THEY_ARE, from_plain, to_plain
from slackwater.runtime.operators.ground.of_keys import OfKeys
from slackwater.runtime.operators.ground.user_code import called, check_names
from slackwater.runtime.operators.process.step import ProcessStep
from slackwater.runtime.shown import a_kind, shown, text_of


def _rows_read(returned: Any) -> Any:
    """Return copies of the rows that a method returned or yields.

    The object may fill the same list and the same dicts again. What is no rows is not changed.
    """
    is_list = type(returned) is list  # nearly always: without a look at abstract classes
    if not is_list and (
        isinstance(returned, Mapping | str | bytes) or not hasattr(returned, "__iter__")
    ):
        return returned
    return [copied_value(row) for row in returned]


class KeyedRows(list[dict[str, Any]]):
    """The rows of one key at one event time, in order, each {column: value}.

    Attributes:
        event_time_ns: when they happened.
    """

    def __init__(self, rows: list[dict[str, Any]], event_time_ns: int) -> None:
        super().__init__(rows)
        self.event_time_ns = event_time_ns


@dataclass
class Keyed:
    """A key's object.

    Attributes:
        number: number of the object, in the order in which objects began.
        code: code of the key.
        key: the value of the key column, or those of several.
        operator: the object.
        last_row_ns: when its last row happened.
        stimulus_ns: the latest stimulus of its rows.
        due_ns: when `on_time` is called next, by event time; None: not.
        called_ns: when `on_time` was called last, by event time.
        key_hash: hash of the key, where results leave in the order of hashes; else 0.
        cut: the last cut in which it was saved.
        is_gone: whether the key has a newer object.
    """

    number: int
    code: int
    key: Any
    operator: Any
    last_row_ns: int = START_NS
    stimulus_ns: int = START_NS
    due_ns: int | None = None
    called_ns: int = START_NS
    key_hash: int = 0
    cut: object | None = None
    is_gone: bool = False


_NUMBERS = ("number", "code", "last_row_ns", "stimulus_ns", "called_ns", "key_hash", "due_ns")
"""Fields of a key's object that are saved as a row of numbers."""


def _numbers_of(subjects: Sequence[Keyed]) -> bytes:
    """Return the numbers of objects, a row of int64 each. `pack` is the fastest way."""
    numbers = [
        number
        for own in subjects
        for number in (
            own.number,
            own.code,
            own.last_row_ns,
            own.stimulus_ns,
            own.called_ns,
            own.key_hash,
            END_NS if own.due_ns is None else own.due_ns,
        )
    ]
    return struct.pack(f"{len(numbers)}q", *numbers)


class Objects:
    """Objects makes the user's objects, calls them, and checks what they return.

    It packs itself: of an object its attributes are saved, and an error names the key.

    Args:
        step: the step whose objects they are.

    Attributes:
        by_code: {code of a key: its object}.
        forgotten: objects whose `within` was over before the newest row, so far.
    """

    def __init__(self, step: ProcessStep) -> None:
        self._step = step
        self._names = step.schema.names
        self.by_code = OfKeys[Keyed]()
        self.forgotten = 0
        self._number = 0
        self._saving: _SavedObjects | None = None

    def of(self, code: int, key: Any, time_ns: int) -> Keyed:
        """Return a key's object at an event time; see `will_change`."""
        keyed = self.by_code.get(code)
        if keyed is None or self._is_over(keyed, time_ns):
            if keyed is not None:
                self.forgotten += 1
            keyed = Keyed(self._number, code, key, self._copied(key))
            self._number += 1
            self.by_code.add(keyed)
            if self._saving is not None:
                self._saving.began(keyed)
        return keyed

    def will_change(self, codes: Iterable[int]) -> None:
        """Note that the objects of these keys are about to change."""
        self._saving = self.by_code.save_before(codes, self._saving)

    def _copied(self, key: Any) -> Any:
        return called(
            copy.deepcopy,
            self._step.operator,
            step=self._step.name,
            shown=lambda: f"when {self._who} was copied for key {shown(key)}",
        )

    def take_rows(
        self, one: Keyed, rows: KeyedRows, about: Callable[[], str]
    ) -> list[Mapping[str, Any]]:
        """Give an object its rows; return the rows that it makes.

        Args:
            one: object of the key.
            rows: rows of the key at one event time.
            about: returns rows as text, for errors.
        """
        one.last_row_ns = rows.event_time_ns
        returned = called(
            one.operator.on_rows, one.key, rows, step=self._step.name, shown=about, read=_rows_read
        )
        return self._checked(one, returned, rows.event_time_ns, "on_rows", about)

    def saved(self, one: Keyed) -> tuple[Any, ...]:
        """Return what `put_back` needs, before a call that may raise."""
        return copy.deepcopy(vars(one.operator)), one.last_row_ns, one.stimulus_ns, one.due_ns

    def put_back(self, one: Keyed, saved: tuple[Any, ...]) -> None:
        """Make an object as it was when it was saved."""
        attributes, one.last_row_ns, one.stimulus_ns, one.due_ns = saved
        one.operator.__dict__ = attributes

    def call_in_time(self, one: Keyed, time_ns: int) -> list[Mapping[str, Any]]:
        """Call an object at the event time of its `due_ns`; return its rows."""
        self.will_change((one.code,))
        one.due_ns = one.operator.due_ns = None
        one.called_ns = time_ns

        def about() -> str:
            return f"key {shown(one.key)} at event_time_ns={time_ns}"

        call: Callable[..., Any] | None = getattr(one.operator, "on_time", None)
        if call is None:
            raise OperatorError(
                f"step {self._step.name!r}: {self._who} has set due_ns, and has no "
                f"method on_time(key, t); add one\n{about()}"
            )
        returned = called(
            call, one.key, time_ns, step=self._step.name, shown=about, read=_rows_read
        )
        return self._checked(one, returned, time_ns, "on_time", about)

    def _checked(
        self, one: Keyed, made: Any, now_ns: int, method: str, about: Callable[[], str]
    ) -> list[Mapping[str, Any]]:
        self._set_due(one, now_ns, about)
        if made is None:
            return []
        if not isinstance(made, list):
            raise OperatorError(
                f"step {self._step.name!r}: {self._who}.{method} returned "
                f"{a_kind(made)}; it must return a list of rows, each a dict of "
                f"{', '.join(self._names)}, or None\n{about()}"
            )
        rows: list[Mapping[str, Any]] = made
        for row in rows:
            if type(row) is not dict and not isinstance(row, Mapping):
                raise OperatorError(
                    f"step {self._step.name!r}: {self._who}.{method} returned {shown(row)} among "
                    f"its rows; each must be a dict of {', '.join(self._names)}\n{about()}"
                )
            check_names(row, self._names, step=self._step.name, shown=about)
        return rows

    def _set_due(self, one: Keyed, now_ns: int, about: Callable[[], str]) -> None:
        due_ns = getattr(one.operator, "due_ns", None)
        if due_ns == one.due_ns:
            return
        if due_ns is not None and (type(due_ns) is not int or not now_ns < due_ns < END_NS):
            raise OperatorError(
                f"step {self._step.name!r}: {self._who} has set due_ns={shown(due_ns)}; it must be "
                f"None or whole nanoseconds of event time, later than {now_ns}\n{about()}"
            )
        one.due_ns = due_ns

    def never_ends(self, one: Keyed, calls: int) -> OperatorError:
        """Return the error for an object that is due for ever at the end."""
        return OperatorError(
            f"step {self._step.name!r}: {self._who}.on_time has set due_ns {calls:,} times after "
            f"the last row\nkey {shown(one.key)}, up to event_time_ns={one.called_ns}; the stream "
            "has ended, and each due_ns is called\nset due_ns in on_rows, and in on_time at most a "
            "few times more"
        )

    @property
    def _who(self) -> str:
        return type(self._step.operator).__qualname__

    def forget_before(self, time_ns: int) -> None:
        """Forget, and count, the objects that are over at an event time."""
        left = [one for one in self.by_code.values() if not self._is_over(one, time_ns)]
        self.forgotten += len(self.by_code) - len(left)
        self.by_code = OfKeys(left)

    def forget_all(self) -> None:
        """Forget the objects: no row and no call of theirs follows."""
        self.by_code = OfKeys()

    def renumber(self, kept: StayingNumbers) -> None:
        """Keep the objects of keys that stay, with the new codes."""
        if self._saving is not None:
            self._saving.before_all()
        codes = kept.moved(np.array(list(self.by_code), dtype=np.int64)).tolist()
        for code, one in zip(codes, self.by_code.values(), strict=True):
            one.code = code
        self.by_code = OfKeys([one for one in self.by_code.values() if one.code >= 0])

    def _is_over(self, one: Keyed, time_ns: int) -> bool:
        """Whether a row at that event time would begin with a new object."""
        within_ns = self._step.within_ns
        if within_ns is None or one.due_ns is not None or one.called_ns >= time_ns:
            return False
        return time_ns - within_ns > one.last_row_ns

    def snapshot(self) -> dict[str, Any]:
        """Return all objects, as plain values: lists for each field, and for each attribute.

        Raises:
            OperatorError: an attribute is no plain value; names the key and the attribute.
        """
        plain: dict[str, Any] = self.snapshot_later().finish()
        return plain

    def snapshot_later(self) -> Later:
        """Begin to save all objects."""
        if self._saving is not None:
            self._saving.finish()
        self._saving = _SavedObjects(self.by_code.order, self._plain_value)
        self._saving.plain |= {"number": self._number, "forgotten": self.forgotten}
        return self._saving

    def _plain_value(self, name: str, key: Any, value: Any) -> Any:
        try:
            return copy.deepcopy(to_plain(value, where=f"{self._who}.{name}"))
        except TypeError as problem:
            raise OperatorError(
                f"step {self._step.name!r}: the state of key {shown(key)} cannot be saved: "
                f"{text_of(problem)}"
            ) from problem

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self._number, self.forgotten, self.by_code = state["number"], state["forgotten"], OfKeys()
        for part in state["parts"]:
            self._restore_part(part)

    def _restore_part(self, part: Mapping[str, Any]) -> None:
        columns = [
            [(name, iter(values)) for name, values in attributes] for attributes in part["values"]
        ]
        numbers = part["numbers"].reshape(-1, len(_NUMBERS)).tolist()
        known = zip(part["attributes"].tolist(), part["keys"], numbers, strict=True)
        for place, key, own_numbers in known:
            operator = copy.copy(self._step.operator)
            operator.__dict__ = {
                name: own if type(own) in AS_THEY_ARE else copy.deepcopy(from_plain(own))
                for name, own in ((name, next(values)) for name, values in columns[place])
            }
            own_fields = dict(zip(_NUMBERS, own_numbers, strict=True))
            keyed = Keyed(key=key, operator=operator, **own_fields)
            keyed.due_ns = None if keyed.due_ns == END_NS else keyed.due_ns
            self.by_code.add(keyed)


_PART = 1 << 15
"""Objects of a part, and up to a slice's more: longer lists would be copied as they grow."""


class _SavedObjects(LaterOfMany[Keyed]):
    """State of the objects of all keys, at a cut.

    Args:
        every: objects of all keys.
        plain_value: returns a value as a plain one, by its attribute and the object's key.
    """

    def __init__(self, every: Sequence[Keyed], plain_value: Callable[[str, Any, Any], Any]) -> None:
        super().__init__(every)
        self._plain_value = plain_value
        self.plain = {"parts": list[Any]()}
        self._part: dict[str, Any] = {}  # the last of the parts
        self._numbers, self._attributes = bytearray(), array("q")  # of it
        self._of_names: dict[tuple[str, ...], int] = {}  # {names of attributes: place in `values`}

    def add(self, subjects: Sequence[Keyed]) -> None:
        if not self._part or len(self._part["keys"]) >= _PART:
            self._end_part()
            self._part, self._of_names = {"keys": list[Any](), "values": list[Any]()}, {}
            self._numbers, self._attributes = bytearray(), array("q")
            self.plain["parts"].append(self._part)
        self._numbers += _numbers_of(subjects)
        self._part["keys"] += [own.key for own in subjects]
        attributes = [vars(own.operator) for own in subjects]
        names = [*map(tuple, attributes)]
        if names.count(names[0]) == len(names):  # as nearly always
            self._add_values(names[0], subjects, attributes)
        else:
            for own_names in dict.fromkeys(names):
                places = [at for at, other in enumerate(names) if other == own_names]
                same = [subjects[at] for at in places]
                self._add_values(own_names, same, [attributes[at] for at in places])
        self._attributes.extend(map(self._of_names.__getitem__, names))

    def step(self, most: int) -> None:
        super().step(most)
        if self.is_done:
            self._end_part()

    def _end_part(self) -> None:
        """Give the last part its numbers: nothing is added any more."""
        self._part["numbers"] = np.frombuffer(self._numbers, np.int64)
        self._part["attributes"] = np.frombuffer(self._attributes, np.int64)

    def _add_values(
        self,
        names: tuple[str, ...],
        subjects: Sequence[Keyed],
        attributes: Sequence[dict[str, Any]],
    ) -> None:
        """Add values of objects with the same names of attributes."""
        values = self._part["values"]
        if names not in self._of_names:
            self._of_names[names] = len(values)
            values.append([(name, list[Any]()) for name in names])
        columns = zip(*[own.values() for own in attributes], strict=True)
        for (name, whole), column in zip(values[self._of_names[names]], columns, strict=False):
            if AS_THEY_ARE.issuperset(map(type, column)):
                whole.extend(column)
                continue
            whole += [
                own if type(own) in AS_THEY_ARE else self._plain_value(name, subject.key, own)
                for subject, own in zip(subjects, column, strict=True)
            ]
