"""Notation of an expression, with only the parentheses that Python needs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["ATOM", "CALL", "CHOICE", "INDEX", "METHOD", "UNARY", "Notation", "infix", "prefix"]

ATOM, UNARY = 8, 6
_COMPARISON, _POWER = 1, 7


@dataclass(frozen=True)
class Notation:
    """Notation of a function.

    Attributes:
        write: function of the name, of (text, precedence) of each operand, and of the text of an
            argument that is not an expression, such as the type of a cast.
        binds: precedence of the text in Python.
        is_infix: whether it stands between two operands.
    """

    write: Callable[[str, Sequence[tuple[str, int]], str], str]
    binds: int = ATOM
    is_infix: bool = False


def infix(binds: int) -> Notation:
    """Return the notation between two operands, `a + b`, with this precedence in Python."""
    # a - b - c groups from the left; a ** b from the right; a < b < c is a chain in Python.
    is_strict_left = binds in (_POWER, _COMPARISON)

    def write(op: str, operands: Sequence[tuple[str, int]], _option: str) -> str:
        left, right = operands
        return f"{_bound(left, binds + is_strict_left)} {op} {_bound(right, binds + 1)}"

    return Notation(write, binds, is_infix=True)


def prefix(sign: str) -> Notation:
    """Return the notation before an operand: `-a`."""
    return Notation(lambda _op, operands, _option: sign + _bound(operands[0], UNARY), UNARY)


def _method(op: str, operands: Sequence[tuple[str, int]], option: str) -> str:
    arguments = [*(text for text, _ in operands[1:]), *([option] if option else [])]
    return f"{_bound(operands[0], ATOM)}.{op}({', '.join(arguments)})"


def _call(op: str, operands: Sequence[tuple[str, int]], _option: str) -> str:
    return f"{op}({', '.join(text for text, _ in operands)})"


def _index(_op: str, operands: Sequence[tuple[str, int]], option: str) -> str:
    return f"{_bound(operands[0], ATOM)}[{option}]"


def _choice(_op: str, operands: Sequence[tuple[str, int]], _option: str) -> str:
    texts = [text for text, _ in operands]
    branches = [f"when({a}).then({b})" for a, b in itertools.pairwise(texts)][::2]
    return f"{'.'.join(branches)}.otherwise({texts[-1]})"


def _bound(operand: tuple[str, int], binds: int) -> str:
    text, own = operand
    return text if own >= binds else f"({text})"


METHOD, CALL, INDEX, CHOICE = map(Notation, (_method, _call, _index, _choice))
"""The notations `a.round(2)`, `where(a, b, c)`, `a["x"]`, and `when(a).then(b).otherwise(c)`."""
