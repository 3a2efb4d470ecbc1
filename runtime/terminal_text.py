"""Text from outside, made safe for a terminal: names, notes, logs, prints.

An escape can set a title, overwrite our text, or make the terminal type. So each such character is
shown by its picture: `␛[2J` for one that would have cleared the screen.
"""

from __future__ import annotations

__all__ = ["PICTURES", "sanitized"]

_SPACES = "\n\t"
# Directions, isolates, joiners and line separators: they make a name look like another.
_HIDDEN = [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0x61C, 0xFEFF]
PICTURES = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in _SPACES},
    0x7F: 0x2421,
    **dict.fromkeys([*range(0x80, 0xA0), *_HIDDEN, *range(0xD800, 0xE000)], 0xFFFD),
}
"""{code: code of the character shown in its place}."""
PICTURES_IN_LINE = {**PICTURES, **{ord(space): 0x2400 + ord(space) for space in _SPACES}}
"""The same, for text within a line."""


def sanitized(text: str, *, in_line: bool = False) -> str:
    """Return a text of the same length without control characters.

    Args:
        text: text of any kind.
        in_line: whether line ends and tabs are shown by their pictures, too; else they stay.
    """
    return text.translate(PICTURES_IN_LINE if in_line else PICTURES)
