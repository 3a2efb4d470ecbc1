"""The project's cluster.yaml, with what its comments say to change, changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

__all__ = ["cluster_yaml"]

MARK = r"(  # change:.*)"
FROM_WHEELS = "--find-links ~/slackwater-wheels slackwater"
INSTALL = "  - python3 -m pip install --quiet "


def cluster_yaml(
    original: Path, *, head_ip: str, worker_ips: Sequence[str], ssh_key: str, wheels: str
) -> str:
    """Return the text of `original` for other hosts.

    Args:
        original: the file; each line to change ends in a comment "# change: …".
        head_ip: address of the head.
        worker_ips: addresses of the workers.
        ssh_key: path of the private key that opens all of them to root.
        wheels: folder with a wheel of the project, on the machine that calls `ray up`.

    Raises:
        ValueError: a line to change is not there, or one is that nobody here knows.
    """
    changes = {
        "  head_ip: ": head_ip,
        "  worker_ips: ": f"[{', '.join(worker_ips)}]",
        "  ssh_user: ": "root",
        "  ssh_private_key: ": ssh_key,
        "min_workers: ": str(len(worker_ips)),
        "max_workers: ": str(len(worker_ips)),
        '  "~/slackwater-wheels": ': wheels,
        INSTALL: f"--no-index {FROM_WHEELS}",
    }
    text = original.read_text(encoding="utf-8")
    for start, value in changes.items():
        text, found = re.subn(
            f"^({re.escape(start)}).*?{MARK}$", rf"\g<1>{value}\g<2>", text, flags=re.MULTILINE
        )
        if found != 1:
            raise ValueError(f"{original.name} has {found} lines to change that start {start!r}")
    if (marks := text.count("# change:")) != len(changes):
        raise ValueError(
            f"{original.name} says {marks} times to change something, known are {changes}"
        )
    return text
