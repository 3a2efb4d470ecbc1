"""Print text of others safely on a terminal: styled, as JSON, or plain."""

from __future__ import annotations

from typing import Any

import typer
from rich.text import Text

from slackwater.runtime.terminal_text import PICTURES, sanitized

__all__ = ["echo", "sanitized", "sanitized_json", "sanitized_line"]

_ESCAPES = {code: f"\\u{code:04x}" for code in PICTURES if code >= 0x7F}  # json.dumps: the rest


def sanitized_line(line: Text) -> Text:
    """Return a styled text, sanitized."""
    shown = sanitized(line.plain)
    if shown == line.plain:
        return line
    clean = line.copy()
    clean.plain = shown
    return clean


def sanitized_json(text: str) -> str:
    """Return JSON of the same meaning that no terminal obeys."""
    return text.translate(_ESCAPES)


def echo(text: str, **how: Any) -> None:
    """Print a text as `typer.echo` does, sanitized."""
    typer.echo(sanitized(text), **how)
