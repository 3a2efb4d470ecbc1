"""Identify the boot of the kernel that this process runs under."""

from __future__ import annotations

from pathlib import Path

__all__ = ["boot_id"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str | None:
    """Return the id that all processes of one boot share; None if not known.

    Copies of a virtual machine, woken from one image, share it too.
    """
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):  # no Linux, or a /proc that says less
        return None
