"""Stand in for Ray's dashboard agent: 8 MB, not 85, and no polling.

A raylet does not start without that agent, dies with it, and waits for three files with its ports.
This process writes -1, "no such service", into them, as Ray's own agent does without a dashboard,
and ends with its raylet. The raylet runs it as a file.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["PORTS", "main"]

PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")


def main(arguments: list[str]) -> None:
    """Write the port files named by `--session-dir=` and `--node-id=`; wait for the raylet."""
    options = dict(word[2:].split("=", 1) for word in arguments if "=" in word)
    for name in PORTS:
        path = Path(options["session-dir"], f"{name}_{options['node-id']}")
        part = path.with_name(path.name + ".part")
        part.write_text("-1", encoding="ascii")
        part.replace(path)  # the raylet never sees half a file
    os.read(0, 1)  # the raylet holds the other end: returns when it ends


if __name__ == "__main__":
    main(sys.argv[1:])
