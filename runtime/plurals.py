"""Counts with nouns and verbs that agree: "1 node is", "1,200 rows are"."""

from __future__ import annotations

__all__ = ["agreeing", "count_of", "times"]

_HISSING = ("s", "x", "z", "ch", "sh")


def count_of(count: float, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is one."""
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {noun if count == 1 else _plural(noun)}"


def agreeing(count: float, singular: str, plural: str) -> str:
    """Return the form of a word that agrees with a count: "is" or "are"."""
    return singular if count == 1 else plural


def times(count: int) -> str:
    """Return how often something was, in words: "once", "3 times"."""
    return "once" if count == 1 else f"{count:,} times"


def _plural(noun: str) -> str:
    """Return the plural of a noun, of whose words the last one changes."""
    if noun.endswith(_HISSING):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return f"{noun[:-1]}ies"
    return f"{noun}s"
