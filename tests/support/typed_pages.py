"""A page of docs as a reader types it: its fenced blocks in order, in a folder.

    ```python title="flow.py"     a file, saved under that name
    ```sh                         commands, typed in a shell
    ```text                       what the commands before it print; … stands for anything
    ```console                    commands that are shown, and not typed here

Commands must end with 0, unless a line of their output begins with an error's name. Of those that
do, stdout is compared; of an error stderr as well.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import ndiff
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r'^```(\w*)(?: title="([^"\n]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
ERROR = re.compile(r"^(?:[\w.]+Error|slackwater): ", re.MULTILINE)
LONGEST_S = 100  # of one block of commands


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and the line where it begins."""

    kind: str
    title: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2] or "", found[3], text.count("\n", 0, found.start()) + 1)
        for found in FENCE.finditer(text)
    ]


def typed(
    page: Path, folder: Path, *, only: str | None = None, programs: Path | None = None
) -> list[str]:
    """Type a page in a folder; return the differences from what it says is printed.

    Args:
        page: the page.
        folder: where its files are saved, and its commands typed.
        only: the begin of the only commands to type; files are saved all the same.
        programs: a folder whose programs stand for those of this environment.
    """
    found = []
    for block, printed in typed_blocks(page, folder, only=only, programs=programs):
        where = f"{page.name}:{block.line}"
        if isinstance(printed, Failure):
            found.append(f"{where}: {block.text.strip()}\n{printed}")
        elif (shown := _output_of(page, block)) is not None and not alike(printed, shown):
            lines = ndiff(shown.splitlines(), printed.splitlines())
            found.append("\n".join([f"{where}: {block.text.strip()}", *lines]))
    return found


class Failure(str):
    """Output of commands that should have ended well."""


def typed_blocks(
    page: Path, folder: Path, *, only: str | None = None, programs: Path | None = None
) -> Iterator[tuple[Block, str]]:
    """Type a page in a folder; yield each block of commands with what it printed."""
    for block in blocks(page):
        if block.title:
            path = folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.kind == "sh" and (only is None or block.text.startswith(only)):
            yield block, _typed_in_shell(block, folder, _output_of(page, block), programs)


def alike(printed: str, shown: str) -> bool:
    """Return whether a text is what a page shows; … there stands for anything."""
    pattern = ".*".join(re.escape(part.strip(" ")) for part in shown.strip().split("…"))
    return re.fullmatch(pattern.strip(), printed.strip(), re.DOTALL) is not None


def _output_of(page: Path, commands: Block) -> str | None:
    """Return what a page says that commands print: the block after them, if it is an output."""
    later = [block for block in blocks(page) if block.line > commands.line]
    return later[0].text if later and later[0].kind == "text" else None


def _typed_in_shell(block: Block, folder: Path, shown: str | None, programs: Path | None) -> str:
    # `python` and `slackwater` are those of this environment, where no others are given.
    homes = [*([] if programs is None else [programs]), Path(sys.executable).parent]
    done = subprocess.run(  # noqa: S603 - our own page
        ["/bin/bash", "-e", "-c", block.text],
        cwd=folder,
        env={
            **{name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")},
            "PATH": os.pathsep.join([*map(str, homes), os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",  # a file that a page changes twice in a second
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    if done.returncode == 0:
        return done.stdout
    printed = done.stdout + done.stderr
    return printed if ERROR.search(shown or "") else Failure(printed)
