"""Function: a row of the table, with operands, result, kernel, text and traits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from slackwater.runtime.expressions.literals import Value
from slackwater.runtime.expressions.notation import METHOD, Notation

__all__ = [
    "Call",
    "Check",
    "Function",
    "Operand",
    "Over",
    "Results",
    "Rule",
    "Times",
    "anything",
    "own_type",
    "with_call",
]


@dataclass(frozen=True, slots=True)
class Operand:
    """Operand of a function.

    Attributes:
        type: type in which it is computed.
        value: value of a literal; None if it is not a literal.
        own: type of a column of times in its own unit; None if it is the type in which it is
            computed.
    """

    type: pa.DataType
    value: Value | None = None
    own: pa.DataType | None = None

    @property
    def is_literal(self) -> bool:
        """Whether it is a literal."""
        return self.value is not None


Rule = Callable[[str, Sequence[Operand], Any], pa.DataType]
"""Function of a name, operands and an option: the type of results, or TypeMismatch."""


Check = Callable[[str, Sequence[Operand]], object]
"""Function of a name and operands, which raises TypeMismatch for others than the function takes."""


def anything(_op: str, _operands: Sequence[Operand]) -> None:
    """Take any operands: the rule for the type of the results refuses some."""


class Call(NamedTuple):
    """Call of a function with known types, for which a kernel is chosen once.

    Attributes:
        operands: operands as the kernel gets them; a literal has its value.
        option: argument that is not an expression, such as the type of a cast.
        gives: type of the results.
    """

    operands: tuple[Operand, ...]
    option: Any
    gives: pa.DataType


class Over(Enum):
    """Form in which a kernel gets its operands."""

    VALUES = auto()
    """Columns without nulls; the result is null where an operand is."""
    COLUMNS = auto()
    """Columns with their nulls."""
    BATCHES = auto()
    """Functions of a batch, which the kernel calls for the rows that need them."""


class Times(Enum):
    """Unit in which operands that are times reach a kernel."""

    NANOSECONDS = auto()
    OWN = auto()
    """The unit of their column."""
    COMPARED = auto()
    """The unit of their columns, if they have one; equal values give equal results."""


class Results(Enum):
    """Types of results for which a trait of a function holds."""

    NONE = auto()
    EXACT = auto()
    """Whole numbers and decimals."""
    FLOATS = auto()
    ALL = auto()

    def has(self, kind: pa.DataType) -> bool:
        """Return whether the trait holds for results of a type."""
        if self in (Results.NONE, Results.ALL):
            return self is Results.ALL
        return bool(pa.types.is_floating(kind)) is (self is Results.FLOATS)


def _nowhere(_operands: int) -> Collection[int]:
    return ()


@dataclass(frozen=True)
class Function:
    """A function of expressions, stated once.

    Attributes:
        name: name of the operation, such as "+" or "str.lower".
        takes: check of the operands.
        gives: type of the results, or the rule for it.
        kernel: function that returns the kernel of a call; asked once, before rows come.
        text: notation, as a user writes it.
        over: form in which the kernel gets its operands.
        times: unit of operands that are times.
        warns: results for which NumPy may warn: division by zero, overflow, NaN.
        refuses: results of which one may be refused, such as a sum that does not fit.
        null_places: places of operands where None is a null, of so many operands.
    """

    name: str
    takes: Check
    gives: pa.DataType | Rule
    kernel: Callable[[Call], Callable[..., Any]]
    text: Notation = METHOD
    over: Over = Over.VALUES
    times: Times = Times.NANOSECONDS
    warns: Results = Results.NONE
    refuses: Results = Results.NONE
    null_places: Callable[[int], Collection[int]] = _nowhere

    def type_of(self, operands: Sequence[Operand], option: Any = None) -> pa.DataType:
        """Return the type of the results over operands.

        Raises:
            TypeMismatch: the function does not take these types; the text does not name the step.
        """
        self.takes(self.name, operands)
        if isinstance(self.gives, pa.DataType):
            return self.gives
        return self.gives(self.name, operands, option)


def with_call(compute: Callable[..., Any]) -> Callable[[Call], Callable[..., Any]]:
    """Return the choice of a kernel that gets its call before its columns."""
    return lambda call: partial(compute, call)


def own_type(_op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    """Return the type of the operand, for results of that type."""
    return operands[0].type
