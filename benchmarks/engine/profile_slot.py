"""What an event costs in a slot, counted before anything is cut: by function, and by the kernel.

`python -m benchmarks.engine.profile_slot --rate 10000 --place one --source replayed`: the join flow
on slots in processes of their own, without Ray, twice: once left alone, for the counts of the
kernel, and once under cProfile, which makes a function look dearer the more it calls.
"""

from __future__ import annotations

import argparse
import marshal
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.engine.join_latency import MODES, Run
from benchmarks.engine.live import Live, live_join_flow
from benchmarks.engine.recorder import Recorder
from benchmarks.engine.running import ONE_SLOT, arrays_of
from benchmarks.engine.slot_process import Look, SlotProcess
from benchmarks.engine.threads import ThreadCounts, grouped, thread_counts
from benchmarks.engine.workload import join_flow, paced_tables, write
from benchmarks.frame import check, number, table
from slackwater.actors.sinks import sink_runs
from slackwater.actors.slot.report import SlotReport
from slackwater.actors.wire.channel import ChannelKeys
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.prepare.prepare import prepare

PLACES: dict[str, Mapping[str, str] | None] = {"one": ONE_SLOT, "three": None}
NODES = ("node-1", "node-2", "node-3")
AHEAD_NS = 300_000_000
START_NS = 6_000_000_000
"""How long the slots may take until they run, each with its imports, before a live row is due."""
FUNCTIONS = 30


@dataclass(frozen=True)
class Asked:
    """What to profile."""

    rate: int
    place: str
    source: str
    mode: str
    warm_up_s: float
    seconds: float
    seed: int
    with_strace: bool


@dataclass
class Found:
    """Of one slot: what it did while it was looked at, and how it ended."""

    slot: str
    threads: dict[str, ThreadCounts]
    counts: dict[str, int]
    calls: dict[str, int] | None
    """{thread: system calls}; None: nobody here can count them."""
    slices: int
    report: SlotReport | None = None
    looked: Any = None


def main(arguments: Sequence[str] | None = None) -> None:
    """Profile what was asked for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=10_000, help="events a second, of both sources")
    parser.add_argument("--place", choices=list(PLACES), default="one", help="one slot, or three")
    parser.add_argument("--source", choices=("replayed", "live"), default="replayed")
    parser.add_argument("--mode", choices=list(MODES), default="on arrival")
    parser.add_argument("--warm-up", type=float, default=3.0, metavar="S")
    parser.add_argument("--seconds", type=float, default=8.0, metavar="S")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--functions", type=int, default=FUNCTIONS, help="how many of each slot")
    parser.add_argument("--strace", action="store_true", help="name the calls: a run under strace")
    parser.add_argument("--memory", action="store_true", help="what is held, by line: one more run")
    given = parser.parse_args(arguments)
    asked = Asked(
        given.rate,
        given.place,
        given.source,
        given.mode,
        given.warm_up,
        given.seconds,
        given.seed,
        with_strace=False,
    )
    events = asked.rate * asked.seconds
    print(f"{asked.rate:,} events/s, {asked.place} slot(s), {asked.source}, {asked.mode}: counts")
    for one in profiled(asked, "counts"):
        print("", *counts_text(one, events, asked.seconds), sep="\n")
    print("\nunder cProfile, the loops' threads; µs and calls for each event of both sources")
    for one in profiled(asked, "functions"):
        print("", one.slot, *functions_text(one, asked, given.functions), sep="\n")
    if given.strace:
        print("\nunder strace, which slows every call down: which calls the threads make")
        for one in profiled(Asked(**{**vars(asked), "with_strace": True}), "counts"):
            print("", one.slot, one.looked, sep="\n")
    if given.memory:
        print("\nmemory of Python's that is held at the end, by line; under tracemalloc")
        for one in profiled(asked, "memory"):
            rows = [[where, f"{size / 1024:,.0f}", count] for where, size, count in one.looked]
            print("", one.slot, *table(["line", "KiB", "blocks"], rows), sep="\n")


def profiled(asked: Asked, look: Look) -> list[Found]:
    """Run the flow once, and look at each slot in a steady window behind the warm-up."""
    seconds = int(asked.warm_up_s + asked.seconds + 2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start_ns = time.time_ns() + START_NS
        plan = _plan(asked, folder, seconds, start_ns)
        with slots_of(plan, look) as slots:
            begin(slots, plan)
            if asked.source == "replayed":
                start_ns = time.time_ns() + AHEAD_NS
            time.sleep(max(start_ns - time.time_ns(), 0) / 1e9 + asked.warm_up_s)
            found = _watched(slots, asked)
            for slot in slots:
                slot.ask("join")
            for slot, one in zip(slots, found, strict=True):
                one.report = slot.answer()
                check(one.report.state == "done", f"{one.slot}: {one.report.error}")
            if look != "counts":
                for slot, one in zip(slots, found, strict=True):
                    one.looked = slot.call("looked")
    return found


def _plan(asked: Asked, folder: Path, seconds: int, start_ns: int) -> Plan:
    tables = paced_tables(asked.seed, rate=asked.rate, seconds=seconds)
    inputs = [write(rows, folder / str(n)) for n, rows in enumerate(tables)]
    bus, loop = map(arrays_of, tables)
    over = Run(asked.rate, asked.mode, 0, seconds, bus, loop, (inputs[0], inputs[1])).over
    sink, slack = Recorder(str(folder / "out")).sink(), MODES[asked.mode]
    if asked.source == "live":
        live = [Live(one.path, start_ns) for one in inputs]
        flow = live_join_flow(live[0], live[1], sink, over=over, slack=slack)
    else:
        flow = join_flow(inputs[0], inputs[1], sink, over=over, slack=slack)
    return prepare(flow, list(NODES), placement=PLACES[asked.place])


@contextmanager
def slots_of(plan: Plan, look: Look) -> Iterator[list[SlotProcess]]:
    """Hold a process for each slot of a plan; none of them runs yet."""
    keys = ChannelKeys.generate()
    slots = [SlotProcess(slot_plan(plan, name), keys, look) for name in plan.slot_names]
    try:
        yield slots
    finally:
        for slot in slots:
            slot.close()


def begin(slots: Sequence[SlotProcess], plan: Plan) -> int:
    """Let the slots of a plan run; return when the first row of a replay is due, wall clock, ns."""
    known = {slot.name: slot.call("identify") for slot in slots}
    first, *others = slots
    for slot in others:
        slot.call("keep_clock", known[first.name].ahead_ns)
    hosts = {stage: known[slot].host for stage, slot in plan.slots.items()}
    endpoints: dict[str, str] = {}
    for slot in slots:
        endpoints |= slot.call("bind", hosts)
    runs = sink_runs(plan, "profile-1", [slot.call("fingerprints") for slot in slots])
    start_ns: int = max(slot.call("connect", endpoints, runs) for slot in slots) + AHEAD_NS
    for slot in slots:
        slot.call("start", start_ns)
    return start_ns


def _watched(slots: Sequence[SlotProcess], asked: Asked) -> list[Found]:
    """Count in every slot from now on, for so many seconds."""
    before = [(thread_counts(s.pid), s.call("counted"), _slices(s)) for s in slots]
    with tempfile.TemporaryDirectory() as folder:
        tracers = [_tracer(slot.pid, asked, Path(folder) / slot.name) for slot in slots]
        time.sleep(asked.seconds)
        for tracer in tracers:
            if tracer is not None:
                tracer.wait()
        found = []
        for slot, (threads, counts, slices) in zip(slots, before, strict=True):
            after = thread_counts(slot.pid)
            now = slot.call("counted")
            counted = {name: now[name] - counts[name] for name in now}
            path = Path(folder) / slot.name
            said = path.read_text() if path.exists() else ""
            calls = (
                None if asked.with_strace else calls_of(said, {t: n for t, (n, _) in after.items()})
            )
            one = Found(
                slot.name,
                grouped(threads, after, group=str),
                counted,
                calls,
                _slices(slot) - slices,
            )
            one.looked = said if asked.with_strace else None
            found.append(one)
    return found


def _slices(slot: SlotProcess) -> int:
    report: SlotReport = slot.call("report")
    return sum(stage.batches for stage in report.stages)


def _tracer(pid: int, asked: Asked, path: Path) -> subprocess.Popen[bytes] | None:
    """Start what counts the system calls of a process; None: it is not installed here."""
    seconds = str(asked.seconds)
    if asked.with_strace:
        words = ["timeout", "-s", "INT", seconds, "strace", "-c", "-f", "-p", str(pid)]
        words += ["-o", str(path)]
    else:
        words = [*counting(pid, path), "--", "sleep", seconds]
    if shutil.which("strace" if asked.with_strace else "perf") is None:
        return None
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603


def counting(pid: int, path: Path) -> list[str]:
    """Return the command that counts the system calls of each thread of a process, for `calls_of`.

    It goes on until it is interrupted, or a command that is added has ended.
    """
    return [
        *("perf", "stat", "-x", ",", "-o", str(path), "-e", "raw_syscalls:sys_enter"),
        *("--per-thread", "-p", str(pid)),
    ]


def calls_of(said: str, names: Mapping[int, str]) -> dict[str, int] | None:
    """Return {thread: system calls} from what `perf stat --per-thread -x ,` wrote; None: nothing.

    Args:
        said: lines of `name-id,count,…`.
        names: {thread's id: its name}.
    """
    found: dict[str, int] = {}
    for line in said.splitlines():
        who, _, rest = line.partition(",")
        thread, count = who.rpartition("-")[2], rest.partition(",")[0]
        if thread.isdigit() and count.isdigit():
            name = names.get(int(thread), who.rpartition("-")[0])
            found[name] = found.get(name, 0) + int(count)
    return found or None


def counts_text(found: Found, events: float, seconds: float) -> list[str]:
    """Return a slot's counts as lines, for each event of both sources."""
    calls = found.calls or {}
    rows = []
    for name, used in sorted(found.threads.items(), key=lambda one: -one[1].cpu_ns):
        if used.cpu_ns or used.voluntary:
            rows.append(
                [
                    name,
                    used.cpu_ns / seconds / 1e9,
                    used.cpu_ns / events / 1e3,
                    used.voluntary / events,
                    used.involuntary / events,
                    calls[name] / events if name in calls else "–",
                ]
            )
    header = ["thread", "cores", "CPU µs", "sleeps", "preempted", "system calls"]
    counted = found.counts
    slices = max(found.slices, 1)
    return [
        f"{found.slot}: {found.slices / seconds:,.0f} slices/s, {events / slices:.2f} events each; "
        f"collections {counted['collections'] / seconds:.1f}/s, "
        f"{counted['collections_ns'] / 1e6 / seconds:.2f} ms/s; "
        f"{counted['blocks']:+,} blocks of memory",
        *table(header, rows),
        *([] if found.calls is not None else ["system calls: needs perf, and leave to use it"]),
    ]


def functions_text(found: Found, asked: Asked, most: int) -> list[str]:
    """Return the functions that took most of the loop's time, from its start to its end."""
    if found.looked is None:
        return ["no loop was profiled"]
    profile: dict[tuple[str, int, str], tuple[int, float, float]] = marshal.loads(found.looked)  # noqa: S302
    seconds = int(asked.warm_up_s + asked.seconds + 2)
    events = asked.rate * seconds
    root = f"{os.getcwd()}/"
    rows: list[list[Any]] = []
    for (file, line, function), (calls, own_s, whole_s) in sorted(
        profile.items(), key=lambda one: -one[1][1]
    )[:most]:
        where = file.removeprefix(root)
        where = function if file == "~" else f"{where}:{line} {function}"
        rows.append(
            [where[-70:], own_s / events * 1e6, whole_s / events * 1e6, number(calls / events)]
        )
    return table(["function", "own µs", "with what it calls", "calls"], rows)


if __name__ == "__main__":
    main()
