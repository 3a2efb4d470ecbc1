"""Lay out a folder of checkpoints: names of our files.

```
folder/
  .slackwater.lock                                      while a job writes
  checkpoint-00000007.json                              the manifest: checkpoint 7 is complete
  checkpoint-00000007.node-1.4f1c….arrow                the part of a slot
  .checkpoint-00000008.node-1.90ab….arrow.incomplete    being written
  .checkpoint-00000008.77de….json.incomplete
  .checkpoint-spare.node-1.arrow                        of an older checkpoint: written over next
```

A token in a part's name is drawn for each writing. So a writer of an attempt that is over never
replaces a file of the next one.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "LOCK",
    "OwnFile",
    "for_people",
    "hidden_path",
    "manifest_name",
    "own_files",
    "part_name",
    "spare_path",
]

LOCK = ".slackwater.lock"
_MOST_SHOWN = 40  # characters of a slot's or source's name in a file's name
_MANIFEST = re.compile(r"checkpoint-(?P<number>\d{8,})\.json")
_SPARE = re.compile(r"\.checkpoint-spare\.[\w-]*\.arrow", re.ASCII)
_OWN = re.compile(
    r"checkpoint-(?P<number>\d{8,})\.(?:json|[\w-]*\.[0-9a-f]{16}\.arrow)"
    r"|\.checkpoint-(?P<hidden>\d{8,})\.(?:[\w-]*\.)?[0-9a-f]{16}\.(?:json|arrow)\.incomplete",
    re.ASCII,
)


class OwnFile(NamedTuple):
    """File of a checkpoint.

    Attributes:
        path: path of the file.
        number: number of the checkpoint; 0 of a spare file.
        bytes: size of the file.
        is_manifest: whether it is the manifest, and not hidden.
        is_spare: whether it belongs to no checkpoint, and is written over next.
    """

    path: Path
    number: int
    bytes: int
    is_manifest: bool
    is_spare: bool


def manifest_name(number: int) -> str:
    """Return the name of a manifest."""
    return f"checkpoint-{number:08d}.json"


def part_name(number: int, slot: str) -> str:
    """Return a name for a slot's part that no file has had before."""
    return f"checkpoint-{number:08d}.{for_people(slot)}.{secrets.token_hex(8)}.arrow"


def for_people(name: str) -> str:
    """Return as much of a name as a file's name may show."""
    return re.sub(r"[^\w-]", "_", name, flags=re.ASCII)[:_MOST_SHOWN]


def hidden_path(folder: Path, name: str) -> Path:
    """Return the path at which a file is written that is to have this name."""
    if _MANIFEST.fullmatch(name):
        name = f"{Path(name).stem}.{secrets.token_hex(8)}.json"
    return folder / f".{name}.incomplete"


def spare_path(folder: Path, slot: str) -> Path:
    """Return the path of a slot's spare file: its next part is written over it.

    Slots with names that are alike may have the same: it is renamed before it is used.
    """
    return folder / f".checkpoint-spare.{for_people(slot)}.arrow"


def own_files(folder: Path) -> list[OwnFile]:
    """Return the files of checkpoints in a folder, in order; anything else is not ours.

    Raises:
        OSError: the folder cannot be looked at.
    """
    files = []
    for name in sorted(os.listdir(folder)):
        match, is_spare = _OWN.fullmatch(name), _SPARE.fullmatch(name) is not None
        if match is None and not is_spare:
            continue
        try:
            status = os.lstat(folder / name)
        except FileNotFoundError:  # a writer has just renamed it
            continue
        if stat.S_ISREG(status.st_mode):
            number = 0 if match is None else int(match["number"] or match["hidden"])
            is_manifest = _MANIFEST.fullmatch(name) is not None
            files.append(OwnFile(folder / name, number, status.st_size, is_manifest, is_spare))
    return files
