"""Which boot of which kernel this process runs under."""

from __future__ import annotations

from pathlib import Path

__all__ = ["boot_id"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str | None:
    """Return what the processes under one boot of one kernel have in common; None: not to be had.

    Copies of a virtual machine, woken from one image, have it in common too.
    """
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):  # no Linux, or a /proc that says less
        return None
