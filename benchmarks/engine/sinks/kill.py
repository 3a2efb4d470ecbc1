"""A hundred kills during live sinks: what readers see, what is missing, and what a rerun makes.

Three ways to die: a slot's process, the driver or the head, in a job on Ray; the sink's own
process before its n-th operation on files, whichever that is; and a disk that is full. A reader
polls all the while. Then the flow runs again with resume=True.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import slackwater as sw
from benchmarks.engine.sinks.alone import KINDS, PART_ROWS, ROWS, Alone, Order
from benchmarks.engine.sinks.flow import EVENTS, EVERY_S, MODES, PLACES, flow_of, write_inputs
from benchmarks.engine.sinks.flow import PART_ROWS as FLOW_PART_ROWS
from benchmarks.engine.sinks.reader import Watcher, rows_of, shown
from benchmarks.frame import Claim, Options, Result, counted
from slackwater.runtime.errors import SlackwaterError

ROOT = Path(__file__).resolve().parents[3]
SLOTS = {"source": "node-1", "join": "node-2", "sink": "node-3"}
FULL = {"file": 30, "disk": 16, "source": 14, "join": 14, "sink": 14, "driver": 6, "head": 6}
QUICK = {"file": 6, "disk": 2, "source": 1, "join": 1, "sink": 1, "driver": 0, "head": 0}
SOON_S = 90.0
GRACE_S = 0.5
"""How much longer than its interval a row may have waited when the kill came: what a loop, and a
file system that syncs, take on a busy machine."""
THEIRS = {"notes.txt": b"mine", ".theirs.incomplete": b"half", "deeper/part-00000001.jsonl": b"{}"}


@dataclass
class Tally:
    """What all kills together have shown."""

    kills: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    looks: int = 0
    over: list[int] = field(default_factory=list)  # rows not visible beyond a part's, of each kill
    waited_s: list[float] = field(default_factory=list)  # beyond which a row was not visible
    unlike: list[str] = field(default_factory=list)  # reruns unlike the unfailed run
    touched: list[str] = field(default_factory=list)  # files of others
    unsaid: list[str] = field(default_factory=list)  # full disks without the words

    def saw(self, watcher: Watcher, what: str) -> None:
        """Take what a reader saw."""
        self.looks += watcher.looks
        self.problems += [f"{what}: {problem}" for problem in watcher.problems]


def run(options: Options) -> Result:
    """Measure."""
    return measure(QUICK if options.quick else FULL, seed=options.seed)


def measure(kills: Mapping[str, int], *, seed: int) -> Result:
    """Kill so often {what: how often}."""
    rng, tally = random.Random(seed), Tally()  # noqa: S311 chance, not secrets
    with tempfile.TemporaryDirectory(prefix="sink-kill-") as name:
        folder = Path(name)
        with Alone() as alone:
            for trial in counted(range(kills["file"]), of=kills["file"], what="file"):
                _file_kill(folder / f"file-{trial}", alone, rng, tally)
            for trial in counted(range(kills["disk"]), of=kills["disk"], what="disk"):
                _full_disk(folder / f"disk-{trial}", alone, rng, tally)
        expected = write_inputs(folder)
        with sw.Cluster.local(nodes=3) as cluster:
            whole = {mode: _unfailed(cluster, folder, mode) for mode in MODES}
            for role in ("source", "join", "sink"):
                for trial in counted(range(kills[role]), of=kills[role], what=role):
                    mode = MODES[(trial + rng.randrange(3)) % 3]
                    out = folder / f"{role}-{trial}"
                    _slot_kill(cluster, folder, out, (role, mode), rng, tally, expected)
                    _again(cluster, folder, out, mode, tally, expected, whole[mode])
        for role in ("driver", "head"):
            for trial in counted(range(kills[role]), of=kills[role], what=role):
                mode = MODES[trial % 3]
                own = folder / f"{role}-{trial}"
                _driver_kill(own, (role, mode), rng, tally, expected)
                with sw.Cluster.local(nodes=3) as cluster:
                    whole_here = _unfailed(cluster, own, mode)
                    _again(cluster, own, own / "out", mode, tally, expected, whole_here)
    return _result(tally, sum(kills.values()))


# -- the sink alone ----------------------------------------------------------------------------


def _file_kill(folder: Path, alone: Alone, rng: random.Random, tally: Tally) -> None:
    """Kill the sink's process before some of its operations on files, and go on."""
    out, kind, what = folder / "out", rng.choice(KINDS), folder.name
    _put_theirs(out)
    alone.do(Order(kind, str(folder / "whole")))
    with Watcher(out, list(range(ROWS))) as watcher:
        for again in range(rng.choice((1, 1, 2, 3))):  # some die again as they go on
            most = 90 if again else 40  # the first time there are more operations than that
            answer = alone.do(Order(kind, str(out), number=rng.randint(1, most)))
            if answer.error:
                tally.unlike.append(f"{what}: {answer.error}")
            if answer.died:
                visible = sum(len(rows_of(path)) for path in out.glob("part-*"))
                tally.over.append(answer.written - visible - (PART_ROWS - 1))
                tally.kills["file"] += 1
        answer = alone.do(Order(kind, str(out)))
        if answer.error:
            tally.unlike.append(f"{what}: {answer.error}")
    tally.saw(watcher, what)
    _compare(
        out, what, tally, list(range(ROWS)), None if kind == "every" else shown(folder / "whole")
    )


def _full_disk(folder: Path, alone: Alone, rng: random.Random, tally: Tally) -> None:
    """Let a sink run into a full disk, or a quota; then give it room and go on."""
    out, kind, what = folder / "out", rng.choice(KINDS[:2]), folder.name
    alone.do(Order(kind, str(folder / "whole")))
    out.mkdir(parents=True)
    with _small_disk(out) as is_small:
        _put_theirs(out)
        quota = None if is_small else rng.randint(900, 1_250)
        ballast = out / "ballast"
        if is_small:
            free = os.statvfs(out)
            ballast.write_bytes(bytes(free.f_bavail * free.f_bsize - 4_096 * rng.randint(1, 8)))
        with Watcher(out, list(range(ROWS))) as watcher:
            answer = alone.do(Order(kind, str(out), most_bytes=quota))
            visible = sum(len(rows_of(path)) for path in out.glob("part-*"))
            ballast.unlink(missing_ok=True)
            if answer.error:
                tally.kills["disk"] += 1
                tally.over.append(answer.written - visible - (PART_ROWS - 1))
                words = ("sink 'out'", str(out), f"with {visible:,} rows are published and safe")
                tally.unsaid += [
                    f"{what}: {answer.error}" for one in words if one not in answer.error
                ]
            alone.do(Order(kind, str(out)))
        tally.saw(watcher, what)
        _compare(out, what, tally, list(range(ROWS)), shown(folder / "whole"))


@contextmanager
def _small_disk(folder: Path) -> Iterator[bool]:
    """Have a file system of 64 KiB there, if we may mount one; yield whether there is."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False).returncode == 0  # noqa: S603
    except OSError:
        done = False
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", str(folder)], check=True)  # noqa: S603, S607


# -- jobs on Ray -------------------------------------------------------------------------------


def _unfailed(cluster: sw.Cluster, folder: Path, mode: str) -> dict[str, bytes]:
    """Return the files of a run that nobody disturbs."""
    out = folder / f"whole-{mode}"
    flow = flow_of(folder, out, mode, speed=None)
    cluster.submit(flow, placement=PLACES).wait(timeout=SOON_S)
    return shown(out)


def _slot_kill(
    cluster: sw.Cluster,
    folder: Path,
    out: Path,
    victim: tuple[str, str],
    rng: random.Random,
    tally: Tally,
    expected: list[int],
) -> None:
    role, mode = victim
    _put_theirs(out)
    job = cluster.submit(flow_of(folder, out, mode, speed=1.0), placement=PLACES)
    with Watcher(out, expected) as watcher:
        watcher.wait_for(rng.randint(1, EVENTS * 2 // 3), within_s=SOON_S)
        psutil.Process(job.workers()[SLOTS[role]]).kill()
        waited_s = watcher.waited_s()
        try:
            job.wait(timeout=SOON_S)
            tally.problems.append(f"{out.name}: the job did not fail, and was {job.status}")
        except SlackwaterError:
            tally.kills[role] += 1
    tally.saw(watcher, f"{out.name} {mode}")
    _not_visible(out, mode, waited_s, tally)


def _driver_kill(
    folder: Path,
    victim: tuple[str, str],
    rng: random.Random,
    tally: Tally,
    expected: list[int],
) -> None:
    role, mode = victim
    out = folder / "out"
    _put_theirs(out)
    write_inputs(folder)
    command = [sys.executable, "-m", "benchmarks.engine.sinks.flow", str(folder), mode]
    with subprocess.Popen(  # noqa: S603 our own program
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as driver:
        assert driver.stdout is not None
        known = json.loads(driver.stdout.readline())
        started = psutil.Process(driver.pid).children(recursive=True)
        with Watcher(out, expected) as watcher:
            watcher.wait_for(rng.randint(1, EVENTS * 2 // 3), within_s=SOON_S)
            for pid in known["head"] if role == "head" else [driver.pid]:
                psutil.Process(pid).kill()
            waited_s = watcher.waited_s()
            tally.kills[role] += 1
            psutil.wait_procs(
                [psutil.Process(pid) for pid in known["slots"].values() if psutil.pid_exists(pid)],
                timeout=20,
            )
            driver.kill()
            psutil.wait_procs(started, timeout=20)
    tally.saw(watcher, f"{folder.name} {mode}")
    _not_visible(out, mode, waited_s, tally)


def _not_visible(out: Path, mode: str, waited_s: float, tally: Tally) -> None:
    """Take what the kill kept from readers: lines in hidden files are there to be counted."""
    if mode == "every":
        tally.waited_s.append(waited_s)
    elif mode == "rows":
        hidden = [path.read_bytes().count(b"\n") for path in out.glob(".part-*.incomplete")]
        tally.over.append(sum(hidden) - FLOW_PART_ROWS)


def _again(
    cluster: sw.Cluster,
    folder: Path,
    out: Path,
    mode: str,
    tally: Tally,
    expected: list[int],
    whole: Mapping[str, bytes],
) -> None:
    """Run it again, behind what is committed, as fast as it goes."""
    before = sum(len(rows_of(path)) for path in out.glob("part-*"))
    with Watcher(out, expected) as watcher:
        job = cluster.submit(flow_of(folder, out, mode, speed=None), placement=PLACES)
        report = job.wait(timeout=SOON_S)
    tally.saw(watcher, f"{out.name} {mode}, again")
    if report.sinks[0].already_committed < before or not report.ledger.is_balanced:
        tally.unlike.append(f"{out.name}: {report.sinks[0].already_committed} of {before} skipped")
    _compare(out, f"{out.name} {mode}", tally, expected, None if mode == "every" else whole)


# -- what must hold ----------------------------------------------------------------------------


def _put_theirs(out: Path) -> None:
    for name, data in THEIRS.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _compare(
    out: Path, what: str, tally: Tally, expected: list[int], whole: Mapping[str, bytes] | None
) -> None:
    """Compare with the unfailed run: rows, and bytes where borders are by rows alone."""
    found = [n for path in sorted(out.glob("part-*")) for n in rows_of(path)]
    if found != expected or (whole is not None and shown(out) != whole):
        tally.unlike.append(f"{what}: {len(found)} rows in {len(shown(out))} parts")
    for name, data in THEIRS.items():
        if (out / name).read_bytes() != data:
            tally.touched.append(f"{what}: {name}")
    left = [path.name for path in out.glob(".part-*.incomplete")]
    left += [path.name for path in out.glob(".slackwater.lock*")]
    tally.unlike += [f"{what}: {name} is left" for name in left]


def _result(tally: Tally, wanted: int) -> Result:
    total = sum(tally.kills.values())
    longest_s = max(tally.waited_s, default=0.0)
    most_over = max([0, *tally.over])
    claims = [
        Claim("kills", total, ">=", wanted),
        Claim("things that a reader must not see", len(tally.problems), "<=", 0),
        Claim("rows not visible beyond one part's", most_over, "<=", 0),
        Claim("s that a row was not visible when killed", longest_s, "<=", EVERY_S + GRACE_S),
        Claim("reruns unlike the unfailed run", len(tally.unlike), "<=", 0),
        Claim("files of others touched", len(tally.touched), "<=", 0),
        Claim("full disks not told in words", len(tally.unsaid), "<=", 0),
    ]
    told = tally.problems + tally.unlike + tally.touched + tally.unsaid
    return Result(
        sample=f"{total} kills, a reader that looked {tally.looks:,} times",
        header=["killed", "times"],
        rows=[(what, number) for what, number in tally.kills.items()],
        figures={"kills": dict(tally.kills), "looks": tally.looks, "problems": told[:20]},
        claims=claims,
        notes=[
            f"a live sink's interval is {EVERY_S} s; {GRACE_S} s more is for the loop and the disk",
            *told[:20],
        ],
    )
