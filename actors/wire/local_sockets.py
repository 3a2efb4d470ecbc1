"""Channels that stay on one host: who is on ours, and a socket that only our user can reach.

Two slots on one host speak through a Unix domain socket, in the clear. It lies in a fresh
folder of mode 0700, so the kernel lets nobody in but our own user, who could read our memory
anyway, and root. (Linux's abstract sockets have no permissions; they are not used.) Its path
is taken away once the one sender is connected: the connection lives on without it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile

from slackwater.actors.kernel.boot import boot_id

SCHEME = "ipc://"
"""How the endpoint of such a socket begins, in ZeroMQ's words."""
_LONGEST_PATH = 107  # bytes; of 108, the last is a zero
_NAMESPACES = ("/proc/self/ns/mnt", "/proc/self/ns/net")


def host_identity(address: str) -> str | None:
    """Return what two processes have in common if and only if such a socket can join them.

    That is one boot of one kernel, one view of its files and of its network, and one user. The
    address is in it because copies of a virtual machine, woken from one image, agree in all
    the rest. None if the system cannot say it: then nobody is on our host.

    Args:
        address: on which this process listens to other hosts.
    """
    boot = boot_id()
    try:
        namespaces = [os.readlink(name) for name in _NAMESPACES]
    except OSError:  # no Linux, or a /proc that says less
        return None
    return boot and " ".join((address, boot, *namespaces, f"user {os.geteuid()}"))


def private_path() -> str | None:
    """Return the path for one socket, in a fresh folder of its own that only we may enter.

    None if the temp folder takes none, or its path is too long for a socket.
    """
    try:
        folder = tempfile.mkdtemp(prefix="sw-")
    except OSError:
        return None
    path = f"{folder}/channel"
    if len(os.fsencode(path)) > _LONGEST_PATH:
        remove(path)
        return None
    return path


def remove(path: str) -> None:
    """Remove a socket and its folder, whichever is still there. Either end may do it."""
    with contextlib.suppress(OSError):
        os.unlink(path)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))
