"""Text of others on our terminal: names, notes, logs and errors may hold what a terminal obeys.

An escape can set a title, move the cursor over what we said, or have the terminal type. So each
such character is shown by its picture: `␛[2J` for one that would have cleared the screen.
"""

from __future__ import annotations

from typing import Any

import typer
from rich.text import Text

__all__ = ["echo", "sanitized", "sanitized_json", "sanitized_line"]

_KEPT = "\n\t"
# Directions, isolates, joiners and line separators: they make a name look like another.
_HIDDEN = [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0x61C, 0xFEFF]
_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in _KEPT},
    0x7F: 0x2421,
    **dict.fromkeys([*range(0x80, 0xA0), *_HIDDEN, *range(0xD800, 0xE000)], 0xFFFD),
}
_ESCAPES = {code: f"\\u{code:04x}" for code in _PICTURES if code >= 0x7F}  # json.dumps had the rest


def sanitized(text: str) -> str:
    """Return a text of the same length that no terminal obeys; lines and tabs stay."""
    return text.translate(_PICTURES)


def sanitized_line(line: Text) -> Text:
    """Return the same of a text with styles."""
    shown = sanitized(line.plain)
    if shown == line.plain:
        return line
    made = line.copy()
    made.plain = shown
    return made


def sanitized_json(text: str) -> str:
    """Return JSON that means the same, and that no terminal obeys."""
    return text.translate(_ESCAPES)


def echo(text: str, **how: Any) -> None:
    """Print a text as `typer.echo` does, sanitized."""
    typer.echo(sanitized(text), **how)
