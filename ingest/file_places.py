"""Places in the files of an input: what a block's position says.

```
file 0      file 1                       file 2
[rows ···]  [rows ···|mark·· good, bad ··]  …        from a mark a file can be read on: a row group,
                      └ rows since ┘                  a piece of text
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from slackwater.ingest.paths import Content, content_of
from slackwater.ingest.positions import position_of, refused

__all__ = ["FILE_FACTS", "FilePlace", "place_of"]

FILE_FACTS = 8
"""Number of facts of a position, without those of its mark."""


class FilePlace(NamedTuple):
    """Place in the files of an input.

    Attributes:
        file: number of the file, from 0.
        before: good rows of earlier files.
        marked: good rows of the file before its mark.
        good: good rows since the mark.
        bad: records since the mark that could not be read.
        mark: numbers of the mark; empty: the file's start.
    """

    file: int = 0
    before: int = 0
    marked: int = 0
    good: int = 0
    bad: int = 0
    mark: tuple[int, ...] = ()

    def at_mark(self, mark: tuple[int, ...]) -> FilePlace:
        """Return the place at a mark that is reached."""
        return FilePlace(self.file, self.before, self.marked + self.good, mark=mark)

    def after(self, rows: int, *, is_bad: bool) -> FilePlace:
        """Return the place after some rows."""
        file, before, marked, good, bad, mark = self
        if is_bad:
            return FilePlace(file, before, marked, good, bad + rows, mark)
        return FilePlace(file, before, marked, good + rows, bad, mark)

    def next_file(self) -> FilePlace:
        """Return the place at the start of the next file."""
        return FilePlace(self.file + 1, self.before + self.marked + self.good)

    def position(self, kind: str, of: str, path: str, content: Content) -> bytes:
        """Return the place as a position.

        Args:
            kind: kind of the input.
            of: digest of its settings.
            path: path of the file.
            content: content of the file.
        """
        *numbers, mark = self
        return position_of(kind, of, [path, content.size, content.ends, *numbers, *mark])


def place_of(facts: Sequence[str | int], files: Sequence[str], *, who: str) -> FilePlace:
    """Return the place of a position whose file is as it was.

    Args:
        facts: facts of a position of this input.
        files: files of the input.
        who: describes the input, for errors.

    Raises:
        IngestError: the file is not there, has shrunk, or has changed.
        OSError: it cannot be read.
    """
    path, size, ends, *numbers = facts
    file, before, marked, good, bad, *mark = map(int, numbers)
    if file >= len(files) or files[file] != path:
        there = f"it is {files[file]} now" if file < len(files) else f"there are {len(files)} now"
        raise refused(who, f"it is in {path}, file {file + 1}, and {there}")
    content = content_of(files[file])
    if content.size < int(size):
        raise refused(who, f"{path} has shrunk from {size} to {content.size} bytes")
    if (content.size, content.ends) != (size, ends):
        raise refused(who, f"{path} has changed since it was read: it is another version")
    return FilePlace(file, before, marked, good, bad, tuple(mark))
