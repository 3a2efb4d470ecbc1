"""Canonical texts of steps: equal for two runs whose output is the same.

A function counts by its code, its defaults and what it closes over, not by its name, its file or
its line; an object by its attributes and its methods. What a function calls by a global name counts
by that name only. An expression counts by its text, and so by its functions' names, too.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from logging import Logger
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.expressions.inside import functions_of
from slackwater.runtime.model import ByDeadline, Release, ReleaseRule
from slackwater.runtime.model.hashes import HASH_VERSION
from slackwater.runtime.plan.step import Step
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["canonical_schema", "canonical_state", "canonical_step", "canonical_work"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)
_PACE = frozenset({"input", "speed", "start", "retry", "max_rows"})
"""Fields of a source without effect on its output: the input has its own fingerprint, and the pace
changes no row."""
_LATER = frozenset(
    {"drift", "close", "sequence", "clock", "feature"}
    | {"on_bad", "on_error", "units", "scale", "combine", "how", "between_ns"}
    | {"ddof", "by", "size", "condition", "custom", "distinct"}  # of an aggregate
    | {"offset_ns", "closed", "gap", "empty_ns", "early_ns", "early_rows", "result_time"}
    | {"discards", "splits_updates"}
)
"""Settings newer than output that a run may resume. Unset, they are omitted, so that old
fingerprints still match."""
_OF_SINKS = frozenset({"output", "ordered", "puts_in_order", "writer"})
"""Fields of sinks without effect on the rows of the steps before them."""
_NAMES = {"release": "slack_ns"}
"""Older names of settings: earlier releases wrote output that a run may resume."""


def canonical_step(step: Step) -> str:
    """Return the text of a step's settings, without a sink's output."""
    return _Writer().settings(step, without=_OF_SINKS)


def canonical_state(step: Step) -> str:
    """Return the text of a step's settings that its saved state depends on.

    They are without names of steps, its schema, its replica and their number.
    """
    without = _OF_SINKS | {"schema", "replica", "replicas"}
    return _NamelessWriter().settings(step, without=without)


def canonical_schema(step: Step) -> str:
    """Return the text of the columns of a step's rows."""
    return _Writer().text(step.schema)


def canonical_work(step: Step, *, name: str) -> str:
    """Return the text of a step's work on a row, without its gate's rule.

    Functions and objects count by their code alone. Their state may change as they work.

    Args:
        step: the step, or a part of it.
        name: name of the whole step.
    """
    return _WorkWriter(step, name).settings(step, without=_OF_SINKS | {"release", "replica"})


def _is_unset(setting: Any) -> bool:
    # Defaults of `on_bad`, `combine`, `how` and `closed` are words, those of others numbers.
    return setting is None or (
        isinstance(setting, str | int | tuple)
        and setting in ("error", "exact", "inner", "start", 0, ())
    )


class _Writer:
    """Writes values as text; each object once, so that circles end."""

    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}  # {id: object}, kept so that no id comes again

    def settings(self, value: Any, *, without: Collection[str]) -> str:
        texts = [
            f"{_NAMES.get(field.name, field.name)}={self._text_of(value, field.name)}"
            for field in fields(value)
            if field.name not in without
            and field.compare
            and not (field.name in _LATER and _is_unset(getattr(value, field.name)))
        ]
        return f"{type(value).__name__}({', '.join(texts)})"

    def _text_of(self, value: Any, name: str) -> str:
        setting = getattr(value, name)
        if name == "replicas" and isinstance(value, Step):
            if setting is None:
                return "1"  # as it was written when 1 was the default
            if value.traits.orders_keys:
                return f"by key, {HASH_VERSION}"  # the same output for any number
        return self.text(setting)

    def text(self, value: Any) -> str:  # noqa: PLR0911 - one for each kind of value
        if isinstance(value, ByDeadline | ReleaseRule):
            return _release(value)
        if isinstance(value, (Enum, *_PLAIN)):
            return repr(value)
        if isinstance(value, Expr):
            return f"<{value.full_text()}>" + "".join(map(self.text, functions_of(value)))
        if isinstance(value, pa.DataType):
            return str(value)
        if id(value) in self._objects:
            return f"again {list(self._objects).index(id(value))}"
        self._objects[id(value)] = value
        if isinstance(value, pa.Schema):
            return self.text([(field.name, str(field.type)) for field in value])
        if isinstance(value, Mapping):
            pairs = ((self.text(key), self.text(item)) for key, item in value.items())
            return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
        if isinstance(value, set | frozenset):  # in no order, from one process to the next
            return "{" + ", ".join(sorted(self.text(item) for item in value)) + "}"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(self.text(item) for item in value) + "]"
        if is_dataclass(value) and not isinstance(value, type):
            text = self.settings(value, without=_PACE if isinstance(value, SourceSpec) else ())
            # Methods of our classes change between releases without a change of output.
            own = type(value).__module__.startswith("slackwater.runtime.")
            return text if own else f"{text} {self._methods(value)}"
        return f"({' '.join(self._of_object(value))})"

    def _of_object(self, value: Any) -> Iterator[str]:
        if isinstance(value, CodeType):
            yield value.co_code.hex()
            yield self.text(value.co_consts)
            yield self.text((value.co_names, value.co_varnames, value.co_freevars))
        elif isinstance(value, FunctionType):
            yield self.text(value.__code__)
            yield self.text((value.__defaults__, value.__kwdefaults__))
            for cell in value.__closure__ or ():
                yield self.text(_inside(cell))
        elif isinstance(value, partial):
            yield self.text((value.func, value.args, value.keywords))
        elif isinstance(value, MethodType):
            yield self.text((value.__func__, value.__self__))
        elif isinstance(value, type | BuiltinFunctionType):
            yield f"{value.__module__}.{value.__qualname__}"
        elif isinstance(value, ModuleType):
            yield value.__name__
        elif isinstance(value, Logger):  # its attributes lead to all other loggers of the process
            yield value.name
        else:
            yield f"{type(value).__module__}.{type(value).__qualname__}"
            yield self._methods(value)
            yield self.text(vars(value)) if hasattr(value, "__dict__") else _digest(value)

    def _methods(self, value: Any) -> str:
        """Return the code of an object's class, as far as it is written in Python."""
        methods = {
            f"{base.__qualname__}.{name}": member
            for base in type(value).__mro__
            for name, member in vars(base).items()
            if isinstance(member, FunctionType)
        }
        return self.text(methods)


class _NamelessWriter(_Writer):
    """Writes steps without their names."""

    def _text_of(self, value: Any, name: str) -> str:
        if isinstance(value, Step) and name in ("name", "inputs"):
            return "-"
        return super()._text_of(value, name)


class _WorkWriter(_Writer):
    """Writes objects without their state, which may change as they work."""

    def __init__(self, step: Step, name: str) -> None:
        super().__init__()
        self._step, self._name = step, name

    def _text_of(self, value: Any, name: str) -> str:
        if name == "name" and value is self._step:
            return self.text(self._name)
        if name == "replicas" and isinstance(value, Step) and value.traits.owns_keys:
            return "by key"  # the same work on a row for any number
        return super()._text_of(value, name)

    def _of_object(self, value: Any) -> Iterator[str]:
        if isinstance(value, FunctionType):
            yield self.text(value.__code__)
        elif isinstance(value, partial):
            yield self.text(value.func)
        elif isinstance(value, MethodType):
            yield self.text(value.__func__)
        elif isinstance(value, CodeType | type | BuiltinFunctionType | ModuleType | Logger):
            yield from super()._of_object(value)
        else:
            yield f"{type(value).__module__}.{type(value).__qualname__}"
            yield self._methods(value)


def _release(release: Release) -> str:
    """Return the text of a rule, as earlier releases wrote it where they could."""
    if isinstance(release, ByDeadline):
        return "-2"
    if release.waits_in_full or release.hold_ns is not None:
        return release.text
    return repr(release.lead_ns)


def _digest(value: Any) -> str:
    # Of an object without attributes, such as an array or a table.
    try:
        return hashlib.sha256(pickle.dumps(value, protocol=5)).hexdigest()
    except Exception:  # it cannot be pickled for any reason: then only its type counts
        return ""


def _inside(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is empty: a function that names itself before it is made
        return None
