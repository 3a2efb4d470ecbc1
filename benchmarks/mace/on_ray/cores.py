"""What share of a core processes had: whether others have disturbed a measurement."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def core_shares(pids: Mapping[str, int], *, proc: Path = Path("/proc")) -> dict[str, float]:
    """Return how much of a core each process had of what it wanted, {slot: share}.

    The kernel counts for each thread how long it ran, and how long it was ready to. A process that
    has ended, or a kernel that does not count, is left out.
    """
    shares = {}
    for slot, pid in pids.items():
        ran_ns = waited_ns = 0
        for task in (proc / str(pid) / "task").glob("*/schedstat"):
            try:
                ran, waited, _ = task.read_text(encoding="ascii").split()
            except OSError:  # it ended meanwhile
                continue
            ran_ns += int(ran)
            waited_ns += int(waited)
        if ran_ns:
            shares[slot] = ran_ns / (ran_ns + waited_ns)
    return shares
