"""Text in a notebook's cell: in a fixed-width font, so that its columns stay."""

from __future__ import annotations

from html import escape

__all__ = ["fixed_width"]

_STYLE = "font-family: monospace; white-space: pre; line-height: 1.2"
"""Said, since not every notebook's style sheet gives `<pre>` such a font."""


def fixed_width(text: str) -> str:
    """Return a text as HTML in a fixed-width font."""
    return f'<pre style="{_STYLE}">{escape(text)}</pre>'
