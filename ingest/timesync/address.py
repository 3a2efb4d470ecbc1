"""Parse a time server's address, `host:port`, and open a UDP socket for it."""

from __future__ import annotations

import socket

from slackwater.runtime.errors import IngestError, SettingError
from slackwater.runtime.shown import shown


def address_of(server: str) -> tuple[str, int]:
    """Return host and port of `host:port`, or of `[2001:db8::1]:port`.

    Raises:
        SettingError: the address has neither form.
    """
    host, colon, port = server.rpartition(":") if isinstance(server, str) else ("", "", "")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
        raise SettingError(
            f"server={shown(server)} is not an address; write host:port, such as 10.0.0.1:8123, or "
            "[2001:db8::1]:8123"
        )
    return host, int(port)


def endpoint_of(name: tuple[str | int, ...]) -> str:
    """Return `host:port` of a socket's name."""
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def udp_socket(host: str, port: int, *, binds: bool) -> socket.socket:
    """Return a UDP socket, bound, or connected: then it receives from no other.

    Raises:
        SettingError: the port is out of range.
        IngestError: unknown host, or the port is taken.
    """
    if not 0 <= port < 2**16:
        raise SettingError(f"port={port} (UDP) must be from 0, for a free one, to 65535")
    endpoint: socket.socket | None = None
    try:
        (family, kind, protocol, _, place), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_DGRAM
        )
        endpoint = socket.socket(family, kind, protocol)
        if binds:
            endpoint.bind(place)
        else:
            endpoint.connect(place)
    except OSError as problem:
        if endpoint is not None:
            endpoint.close()
        what = "listen" if binds else "reach a time server"
        raise IngestError(
            f"cannot {what} at {host}:{port} (UDP): {problem}; check host and port"
        ) from problem
    return endpoint
