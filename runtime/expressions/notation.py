"""Notation of an expression, with only the parentheses that Python needs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

ATOM, UNARY = 8, 6
INFIX = {  # operator: its precedence in Python
    "**": 7,
    **dict.fromkeys(("*", "/", "//", "%"), 5),
    **dict.fromkeys(("+", "-"), 4),
    "&": 3,
    "|": 2,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), 1),
}
_PREFIX = {"negative": "-", "~": "~"}
_FUNCTIONS = ("abs", "where", "coalesce")


def binding(op: str) -> int:
    """Return the precedence of an operation."""
    return UNARY if op in _PREFIX else INFIX.get(op, ATOM)


def written(op: str, operands: Sequence[tuple[str, int]], option: str = "") -> str:
    """Return the text of an operation.

    Args:
        op: name of the operation, as in `kernels.py`.
        operands: (text, precedence) of each.
        option: text of an argument that is no expression, such as the type of a cast.
    """
    binds = binding(op)
    if op in INFIX:
        # a - b - c groups from the left; a ** b from the right; a < b < c is a chain in Python.
        is_strict_left = op == "**" or binds == INFIX["<"]
        left, right = operands
        return f"{_bound(left, binds + is_strict_left)} {op} {_bound(right, binds + 1)}"
    if op in _PREFIX:
        return _PREFIX[op] + _bound(operands[0], binds)
    if op == "[]":
        return f"{_bound(operands[0], ATOM)}[{option}]"
    texts = [text for text, _ in operands]
    if op in _FUNCTIONS:
        return f"{op}({', '.join(texts)})"
    if op == "when":
        branches = [f"when({a}).then({b})" for a, b in itertools.pairwise(texts)][::2]
        return f"{'.'.join(branches)}.otherwise({texts[-1]})"
    arguments = [*texts[1:], *([option] if option else [])]
    return f"{_bound(operands[0], ATOM)}.{op}({', '.join(arguments)})"


def _bound(operand: tuple[str, int], binds: int) -> str:
    text, own = operand
    return text if own >= binds else f"({text})"
