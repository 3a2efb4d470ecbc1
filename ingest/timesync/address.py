"""Where a time server is: `host:port`, resolved, and a UDP socket of its family."""

from __future__ import annotations

import socket

from slackwater.runtime.errors import IngestError, SettingError


def address_of(server: str) -> tuple[str, int]:
    """Return host and port of `host:port`, or of `[2001:db8::1]:port`.

    Raises:
        SettingError: it is neither.
    """
    host, colon, port = server.rpartition(":") if isinstance(server, str) else ("", "", "")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
        raise SettingError(
            f"server={server!r} is no address; write host:port, such as 10.0.0.1:8123, or "
            "[2001:db8::1]:8123"
        )
    return host, int(port)


def endpoint_of(name: tuple[str | int, ...]) -> str:
    """Return `host:port` of a socket's name."""
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def udp_socket(host: str, port: int, *, binds: bool) -> socket.socket:
    """Return a UDP socket, bound there, or connected to there: then nobody else's come in.

    Raises:
        SettingError: no port has that number.
        IngestError: there is no such host, or the port is taken.
    """
    if not 0 <= port < 2**16:
        raise SettingError(f"port={port} (UDP) must be from 0, for a free one, to 65535")
    made = None
    try:
        (family, kind, protocol, _, place), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_DGRAM
        )
        made = socket.socket(family, kind, protocol)
        if binds:
            made.bind(place)
        else:
            made.connect(place)
    except OSError as problem:
        if made is not None:
            made.close()
        what = "listen" if binds else "reach a time server"
        raise IngestError(
            f"cannot {what} at {host}:{port} (UDP): {problem}; check host and port"
        ) from problem
    return made
