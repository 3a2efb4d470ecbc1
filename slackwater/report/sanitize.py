"""Text from outside, made safe for the command line: styled, as JSON, or plain."""

from __future__ import annotations

from typing import Any

import typer
from rich.text import Text

from slackwater.runtime.terminal_text import PICTURES, sanitized

__all__ = ["echo", "sanitized", "sanitized_json", "sanitized_line"]

_ESCAPES = {code: f"\\u{code:04x}" for code in PICTURES if code >= 0x7F}  # json.dumps does others


def sanitized_line(line: Text) -> Text:
    """Return a styled text, sanitized."""
    shown = sanitized(line.plain)
    if shown == line.plain:
        return line
    made = line.copy()
    made.plain = shown
    return made


def sanitized_json(text: str) -> str:
    """Return JSON with the same meaning, without control characters."""
    return text.translate(_ESCAPES)


def echo(text: str, **how: Any) -> None:
    """Print a sanitized text by `typer.echo`."""
    typer.echo(sanitized(text), **how)
