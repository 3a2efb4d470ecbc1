"""Samples that outlive their job: what the next job of the same flow is tuned by from the start.

A folder on the tuner's host, a file for each job: JSON lines, one sample each. Who else has an
account there need not read them, and what comes back from there is looked at before it is used:
only regular files of our own user are opened, never by a link, and only so much of them is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from actors.kernel.plain_files import read_plain
from runtime.config import Tuning
from runtime.control import FlowGraph
from runtime.measure.samples import StageSample
from runtime.model import NS_PER_SECOND

__all__ = ["JobHistory", "SampleHistory", "in_order", "most_samples"]

JOBS = 20
"""Files that are kept of one flow; the oldest go."""
LEAST_SECONDS = 2
"""A job that saw less teaches nothing, and would push out one that does."""
NAME_LETTERS = 80
MOST_BYTES = 2**26
"""Of one file: 200,000 samples and more. A longer one is not read."""
STALE_S = 600.0
"""A file that is half made for so long belongs to nobody any more: making one takes no second."""


class SampleHistory:
    """The samples of one flow's jobs.

    Args:
        folder: of all flows.
        graph: of the flow; samples of stages that it does not have, and of intervals of another
            length, are left out.
        most: how many samples are read, the newest.
    """

    def __init__(self, folder: Path, graph: FlowGraph, *, most: int) -> None:
        self._folder = folder / _folder_name(graph.flow)
        self._stages = {stage.name for stage in graph.stages}
        self._interval_ns = graph.interval_ns
        self._most = most

    def load(self) -> tuple[list[StageSample], str]:
        """Return the samples, job after job, and in a few words what that was."""
        jobs: list[list[StageSample]] = []
        count = unread = 0
        try:
            files = self._files()
        except OSError as problem:
            return [], f"not readable: {problem}"
        for path in reversed(files[-JOBS:]):
            if count >= self._most:
                break
            try:
                data = read_plain(path, most_bytes=MOST_BYTES, is_own=True)
                lines = data.decode().splitlines()
                samples = [_checked(StageSample.from_json(json.loads(line))) for line in lines]
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                unread += 1  # half a file, or one of another version: tuning goes on without
                continue
            if samples and all(one.interval_ns != self._interval_ns for one in samples):
                continue
            jobs.append(self._known(samples))
            count += len(jobs[-1])
        found = [sample for job in reversed(jobs) for sample in job][-self._most :]
        words = f"{len(found):,} samples of {len(jobs)} earlier jobs"
        return found, f"{words}, {unread} files could not be read" if unread else words

    def _known(self, samples: Iterable[StageSample]) -> list[StageSample]:
        length_ns = self._interval_ns
        return [s for s in samples if s.stage in self._stages and s.interval_ns == length_ns]

    def save(self, samples: Iterable[StageSample], *, job: str) -> str | None:
        """Keep the samples of a job; return why that was not possible, None if it was.

        Args:
            samples: in any order.
            job: names the file; the jobs of a flow sort by it.
        """
        kept = in_order(samples)
        if len({sample.second for sample in kept}) < LEAST_SECONDS:
            return f"less than {LEAST_SECONDS} seconds of samples"
        lines = [json.dumps(sample.to_json()) + "\n" for sample in kept[-self._most :]]
        while sum(map(len, lines)) > MOST_BYTES:  # it would not be read
            del lines[: len(lines) // 2]
        half_made = self._folder / f".{job}.incomplete"
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._check_own()
            self._clean()
            try:
                half_made.unlink(missing_ok=True)
                with open(half_made, "x", encoding="utf-8", opener=_private) as file:
                    file.writelines(lines)
                half_made.replace(self._folder / f"{job}.jsonl")
            finally:
                half_made.unlink(missing_ok=True)
            for path in self._files()[:-JOBS]:
                path.unlink(missing_ok=True)
        except OSError as problem:
            return str(problem)
        return None

    def _clean(self) -> None:
        """Remove what jobs left that were killed while they saved."""
        for path in self._folder.glob(".*.incomplete"):
            with suppress(FileNotFoundError):  # its job has just made it whole
                if time.time() - path.stat().st_mtime > STALE_S:
                    path.unlink()

    def _files(self) -> list[Path]:
        if not os.path.lexists(self._folder):
            return []
        self._check_own()
        return sorted(self._folder.glob("*.jsonl"))

    def _check_own(self) -> None:
        """Raise OSError unless the folder is ours: who owns another's can put anything into it."""
        found = self._folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(f"{self._folder} is no folder")
        if found.st_uid != os.geteuid():
            raise PermissionError(f"{self._folder} is of user {found.st_uid}, not of ours")


class JobHistory:
    """What one job begins with and leaves behind, if its user wants that; the same on both hosts.

    Attributes:
        said: what the job's report says of it: {"history": words}, or nothing.
    """

    def __init__(self, graph: FlowGraph, tuning: Tuning | None) -> None:
        self._history: SampleHistory | None = None
        self.said: dict[str, str] = {}
        if tuning is not None and tuning.history is not None:
            most = most_samples(graph, tuning)
            self._history = SampleHistory(Path(tuning.history), graph, most=most)

    def load(self) -> list[StageSample]:
        """Return the samples of earlier jobs."""
        if self._history is None:
            return []
        samples, self.said["history"] = self._history.load()
        return samples

    def save(self, samples: Iterable[StageSample]) -> None:
        """Keep the samples of this one."""
        if self._history is None:
            return
        problem = self._history.save(samples, job=f"{time.time_ns()}")
        if problem is not None:
            read = self.said.get("history", "not read")
            self.said["history"] = f"not kept: {problem}; {read}"


def most_samples(graph: FlowGraph, tuning: Tuning | None) -> int:
    """Return how many samples of a flow anybody keeps; nothing is tuned: as by the defaults."""
    window_s = (Tuning() if tuning is None else tuning).window_s
    return max(window_s * NS_PER_SECOND // graph.interval_ns, 1) * len(graph.stages)


def in_order(samples: Iterable[StageSample]) -> list[StageSample]:
    """Return the samples of one job, seconds ascending: slots answer as they can."""
    return sorted(samples, key=lambda sample: sample.second)


def _folder_name(flow: str) -> str:
    """Return a name of safe letters that no other flow has: changed ones end in a hash."""
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", flow)[:NAME_LETTERS].strip("_.-")
    if safe == flow:
        return safe
    return f"{safe or 'flow'}-{hashlib.sha256(flow.encode(errors='replace')).hexdigest()[:8]}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _checked(sample: StageSample) -> StageSample:
    """Return a sample whose numbers are numbers, of 64 bits.

    Raises:
        TypeError, ValueError: they are not.
    """
    if not isinstance(sample.stage, str):
        raise TypeError(f"stage={sample.stage!r} is no name")
    for one in fields(sample):
        value = getattr(sample, one.name)
        if one.name in ("stage", "rule", "tried", "arrived"):  # a rule was checked when it was made
            continue
        if type(value) is not int:
            raise TypeError(f"{one.name}={value!r} is no whole number")
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{one.name}={value} has more than 64 bits")
    for tried in sample.tried:
        name, *counts = tried
        if not isinstance(name, str) or any(type(n) is not int for n in counts):
            raise TypeError(f"{tried!r} is no trial")
        if not all(0 <= n < 2**63 for n in counts):
            raise ValueError(f"{tried!r} has a count below zero, or of more than 64 bits")
    if any(type(n) is not int or not -(2**63) <= n < 2**63 for one in sample.arrived for n in one):
        raise TypeError(f"arrived={sample.arrived!r} is not made of whole numbers")
    if sample.second < 0:
        raise ValueError(f"second={sample.second} is before the start")
    return sample
