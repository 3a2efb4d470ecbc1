"""What a small message costs between two slots: our channel, and a bare ZeroMQ socket beside it.

Two processes without Ray. One sends a message each 250 µs, as a source of 10,000 events a second
does; the other waits, reads and grants now and then. All in turns within one run, so that noise on
the machine hits them alike. Each turn is counted by the threads' own clocks and by the kernel; one
turn more of each is counted by `perf`, which makes system calls dearer, for those alone.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine.profile_slot import calls_of, counting
from benchmarks.engine.threads import ThreadCounts, group_of, grouped, thread_counts
from benchmarks.engine.wire_process import EVERY_NS, LOOP, Told, WireProcess
from benchmarks.frame import Options, Result, Spread, number
from slackwater.actors.wire.channel import ChannelKeys

ROWS = (0, 1, 4, 64)
TRANSPORTS = {"Unix socket": True, "TCP, CURVE": False}  # {transport: both ends are on one host}
WAYS = ("ours", "bare")
AHEAD_NS = 30_000_000
ATTACH_S = 0.3  # perf says nothing when it has begun to count
SIDES = ("sender", "receiver")


@dataclass
class Found:
    """Of one kind of message, one way, on one transport: an entry for each turn.

    Attributes:
        cpu_us: {side: CPU of its thread for each message}.
        libzmq_us: {side: the same of libzmq's threads}.
        sleeps: {side: how often its thread went to sleep, for each message}.
        calls: {side: (system calls of its thread, of libzmq's), for each message}.
        latency_us: p50 from just before it is handed over until it has been read.
    """

    cpu_us: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    libzmq_us: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    sleeps: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    calls: dict[str, tuple[float, float]] = field(default_factory=dict)
    latency_us: list[float] = field(default_factory=list)


def run(options: Options) -> Result:
    """Measure messages without rows and with 1, 4 and 64."""
    turns, count = (3, 1_500) if options.quick else (10, 4_000)
    result = Result(
        f"{turns} turns of {count:,} messages, one each {EVERY_NS // 1_000} µs; columns 5 × 4 "
        "bytes and 2 × 8; two processes without Ray",
        [
            "wire",
            "rows",
            "way",
            "sender µs",
            "receiver µs",
            "libzmq µs, both",
            "calls s, r, libzmq",
            "sleeps s, r",
            "latency p50 µs",
        ],
    )
    found = _measure(turns, count)
    for (transport, rows, way), one in found.items():
        _report(result, transport, rows, way, one)
    for transport in TRANSPORTS:
        for rows in ROWS:
            ours, bare = (_both(found[transport, rows, way]) for way in WAYS)
            ratio = Spread.of([a / b for a, b in zip(ours, bare, strict=True)])
            result.figures[f"{transport}, {rows} rows, CPU of both loops, ours / bare"] = ratio
    result.notes += [
        "CPU, system calls and sleeps are for each message; s and r: the sending and the "
        "receiving thread; waiting is in them",
        "bare: the bytes of the same frame through a PAIR socket of pyzmq's; its sender sleeps "
        "until a message is due, its receiver waits in recv; nothing is granted, nobody looks "
        "whether the peer is there",
        "it claims nothing: what channels may cost is claimed where slots use them (cost)",
    ]
    if shutil.which("perf") is None:
        result.notes.append("system calls were not counted: that needs perf, and leave to use it")
    return result


def _measure(turns: int, count: int) -> dict[tuple[str, int, str], Found]:
    found = {(t, rows, way): Found() for t in TRANSPORTS for rows in ROWS for way in WAYS}
    with _ends() as (sender, receiver):
        for turn in range(turns + 1):
            for case, one in found.items():
                # The first turn warms all up.
                _turn(sender, receiver, case, count if turn else count // 4, one if turn else None)
        if shutil.which("perf") is not None:
            for case, one in found.items():
                _count_calls(sender, receiver, case, count // 2, one)
    return found


@contextmanager
def _ends() -> Iterator[tuple[WireProcess, WireProcess]]:
    keys = ChannelKeys.generate()
    sender, receiver = WireProcess(keys), WireProcess(keys)
    try:
        for transport, is_local in TRANSPORTS.items():
            endpoints = receiver.call("bind", transport, is_local=is_local)
            sender.call("connect", transport, endpoints)
        for case in ((t, 1, way) for t in TRANSPORTS for way in WAYS):
            _turn(sender, receiver, case, 1, None)
        for end in (sender, receiver):
            end.call("settle")
        yield sender, receiver
    finally:
        sender.close()
        receiver.close()


def _turn(
    sender: WireProcess,
    receiver: WireProcess,
    case: tuple[str, int, str],
    count: int,
    found: Found | None,
) -> None:
    """Let so many messages pass, and add what that took."""
    transport, rows, way = case
    before = [thread_counts(end.pid) for end in (sender, receiver)]
    receiver.ask(f"receive_{way}", transport, rows, count)
    start_ns = time.perf_counter_ns() + AHEAD_NS
    sender.ask(f"send_{way}", transport, rows, count, start_ns)
    told: list[Told] = [end.answer() for end in (sender, receiver)]
    if found is None:
        return
    for side, end, used, then in zip(SIDES, (sender, receiver), told, before, strict=True):
        threads = grouped(then, thread_counts(end.pid), group=_group_of)
        found.cpu_us[side].append(used.cpu_ns / count / 1e3)
        found.libzmq_us[side].append(_of(threads, "libzmq").cpu_ns / count / 1e3)
        found.sleeps[side].append(_of(threads, LOOP).voluntary / count)
    took = told[1].times_ns - told[0].times_ns
    found.latency_us.append(float(np.median(took)) / 1e3)


def _count_calls(
    sender: WireProcess,
    receiver: WireProcess,
    case: tuple[str, int, str],
    count: int,
    found: Found,
) -> None:
    ends = (sender, receiver)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / side for side in SIDES]
        tracers = [_tracer(end.pid, path) for end, path in zip(ends, paths, strict=True)]
        time.sleep(ATTACH_S)
        _turn(sender, receiver, case, count, None)
        for tracer in tracers:
            tracer.send_signal(signal.SIGINT)
            tracer.wait()
        for side, end, path in zip(SIDES, ends, paths, strict=True):
            said = path.read_text() if path.exists() else ""
            names = {
                thread: _group_of(name) for thread, (name, _) in thread_counts(end.pid).items()
            }
            calls = calls_of(said, names)
            if calls is not None:
                found.calls[side] = calls.get(LOOP, 0) / count, calls.get("libzmq", 0) / count


def _tracer(pid: int, path: Path) -> subprocess.Popen[bytes]:
    words = counting(pid, path)
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603


def _report(result: Result, transport: str, rows: int, way: str, found: Found) -> None:
    libzmq_us = [sum(pair) for pair in zip(*found.libzmq_us.values(), strict=True)]
    calls = "–"
    if len(found.calls) == len(SIDES):
        sender, receiver = found.calls["sender"], found.calls["receiver"]
        calls = f"{sender[0]:.1f}, {receiver[0]:.1f}, {sender[1] + receiver[1]:.1f}"
    sleeps = {side: Spread.of(times) for side, times in found.sleeps.items()}
    latency_us = Spread.of(found.latency_us)
    result.rows.append(
        [
            transport,
            rows,
            way,
            *(Spread.of(found.cpu_us[side]) for side in SIDES),
            Spread.of(libzmq_us),
            calls,
            ", ".join(f"{sleeps[side].median:.2f}" for side in SIDES),
            number(latency_us.median),
        ]
    )
    result.figures[f"{transport}, {rows} rows, {way}"] = {
        **{f"{side}_cpu_us": Spread.of(found.cpu_us[side]) for side in SIDES},
        "libzmq_cpu_us": Spread.of(libzmq_us),
        "system_calls": {side: list(calls) for side, calls in found.calls.items()},
        "sleeps": sleeps,
        "latency_p50_us": latency_us,
    }


def _both(found: Found) -> list[float]:
    """Return the CPU of both threads for each message, by turn."""
    return [sum(pair) for pair in zip(*found.cpu_us.values(), strict=True)]


def _group_of(name: str) -> str:
    return LOOP if name in (LOOP, "slot-loop") else group_of(name)  # its timers are as sharp


def _of(threads: Mapping[str, ThreadCounts], group: str) -> Any:
    return threads.get(group, ThreadCounts())
