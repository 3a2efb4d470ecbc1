"""Ping another host: print the round trip of each echo in nanoseconds, "lost" where none came.

Run as a file inside a host: `python ping.py <ip> <count> <timeout in seconds>`. The answers come
from the other host's kernel, so what is measured is the network.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import time

ECHO = 8
IP_HEADER_BYTES = 20


def ping(ip: str, count: int, timeout_s: float) -> None:
    """Send one echo at a time, and print what became of it."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        for number in range(1, count + 1):
            packet = struct.pack("!BBHHH", ECHO, 0, 0, 77, number)
            checked = struct.pack("!BBHHH", ECHO, 0, checksum(packet), 77, number)
            sent_ns = time.monotonic_ns()
            raw.sendto(checked, (ip, 0))
            print(wait_for(raw, number, sent_ns, timeout_s), flush=True)  # noqa: T201 its answer


def wait_for(raw: socket.socket, number: int, sent_ns: int, timeout_s: float) -> int | str:
    """Return the nanoseconds until the answer of that number came."""
    until_ns = sent_ns + round(timeout_s * 1e9)
    while (left_ns := until_ns - time.monotonic_ns()) > 0:
        if select.select([raw], [], [], left_ns / 1e9)[0]:
            at_ns = time.monotonic_ns()
            kind, _, _, _, answered = struct.unpack_from("!BBHHH", raw.recv(512), IP_HEADER_BYTES)
            if kind == 0 and answered == number:
                return at_ns - sent_ns
    return "lost"


def checksum(packet: bytes) -> int:
    """Return the Internet checksum of a packet of even length."""
    total: int = sum(struct.unpack(f"!{len(packet) // 2}H", packet))
    total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF ^ (total + (total >> 16)) & 0xFFFF


if __name__ == "__main__":
    ping(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
