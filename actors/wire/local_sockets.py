"""Identify processes of one host, and place sockets that only our user can reach.

Two slots on one host speak through a Unix domain socket, in the clear. It lies in a fresh folder of
mode 0700, so the kernel admits only root and our own user, who could read our memory anyway.
(Linux's abstract sockets have no permissions; they are not used.) Its path is removed once the
sender is connected: the connection lives on without it. If its process is killed before, a slot
that ends later removes it: the folder has a note of who made it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from slackwater.actors.kernel.boot import boot_id
from slackwater.actors.kernel.process_identity import ProcessIdentity

SCHEME = "ipc://"
"""Scheme of the endpoint of such a socket, for ZeroMQ."""
_LONGEST_PATH = 107  # bytes; of 108, the last is a zero
_PREFIX, _NAME, _MEMORY, _OWNER = "sw-", "channel", "memory", "owner"
_NAMESPACES = ("/proc/self/ns/mnt", "/proc/self/ns/net")


def host_identity(address: str) -> str | None:
    """Return an id that two processes share exactly if such a socket joins them.

    The id holds one boot of one kernel, one mount and one network namespace, and one user. It also
    holds the address, since copies of a virtual machine, woken from one image, agree in all the
    rest. None if the system cannot say it: then no process shares our host.

    Args:
        address: address on which this process listens to other hosts.
    """
    boot = boot_id()
    try:
        namespaces = [os.readlink(name) for name in _NAMESPACES]
    except OSError:  # no Linux, or a /proc that says less
        return None
    return boot and " ".join((address, boot, *namespaces, f"user {os.geteuid()}"))


def private_path() -> str | None:
    """Return a path for one socket, in a fresh folder that only we may enter.

    None if the temp folder is not writable, or the path is too long for a socket.
    """
    try:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
    except OSError:
        return None
    path = f"{folder}/{_NAME}"
    if len(os.fsencode(path)) > _LONGEST_PATH:
        remove(path)
        return None
    if (here := ProcessIdentity.here()) is not None:
        here.write(Path(folder, _OWNER))
    return path


def remove_abandoned() -> None:
    """Remove the sockets of processes that were killed before these were connected."""
    with contextlib.suppress(OSError):  # whoever ends goes on doing so
        for note in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_OWNER}"):
            owner = ProcessIdentity.read(note)
            if owner is not None and owner.is_there() is False:
                remove(str(note.with_name(_NAME)))


def memory_link(path: str) -> str:
    """Return the path of the link to the memory of a socket's channel."""
    return f"{os.path.dirname(path)}/{_MEMORY}"


def remove(path: str) -> None:
    """Remove a socket's folder with all that is in it; either end may."""
    for name in (path, memory_link(path), f"{os.path.dirname(path)}/{_OWNER}"):
        with contextlib.suppress(OSError):
            os.unlink(name)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))
