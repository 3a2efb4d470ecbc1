"""The few calls of Linux that Python 3.11 does not have: namespaces, mounts, TAP devices, signals.

Standard library only, like `supervisor.py`, which runs without site-packages.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import subprocess

__all__ = [
    "CLONE_NEWIPC",
    "CLONE_NEWNET",
    "CLONE_NEWNS",
    "CLONE_NEWPID",
    "CLONE_NEWUTS",
    "MS_PRIVATE",
    "MS_REC",
    "die_with_parent",
    "exact_timers",
    "ip",
    "mount",
    "open_tap",
    "set_namespace",
    "unmount_all",
    "unshare",
]

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1
PR_SET_TIMERSLACK = 29
TUNSETIFF = 0x400454CA
IFF_TAP_WITHOUT_HEADER = 0x0002 | 0x1000

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(kinds: int) -> None:
    """Give this process namespaces of its own; of kind pid, give them to its next child."""
    _check(_libc.unshare(kinds), "unshare")


def set_namespace(namespace_fd: int, kind: int) -> None:
    """Move this process (kind pid: its next child) into an open namespace."""
    _check(_libc.setns(namespace_fd, kind), "setns")


def mount(source: str, target: str, kind: str | None, flags: int = 0, options: str = "") -> None:
    """Mount; `kind` None with MS_BIND or a change of propagation."""
    done = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode(),
    )
    _check(done, f"mount {source} on {target}")


def unmount_all(target: str) -> None:
    """Take a mount and all below it out of sight; they end when nobody uses them any more."""
    _check(_libc.umount2(target.encode(), MNT_DETACH), f"unmount {target}")


def die_with_parent(signal_number: int) -> None:
    """Have the system send this process a signal when the parent is gone."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")


def exact_timers() -> None:
    """Have this process woken at the time it asks for, not up to 50 µs later."""
    _check(_libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0), "prctl(PR_SET_TIMERSLACK)")


def open_tap(name: str) -> int:
    """Make a network device whose frames this process reads and writes; it ends with the fd."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP_WITHOUT_HEADER))
    return device


def ip(*words: str) -> None:
    """Run the `ip` command; what it has to say about a failure is in the error."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)  # noqa: S603, S607
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def _check(done: int, what: str) -> None:
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
