"""Keep samples after their job: they tune the flow's next job from its start.

A folder on the tuner's host has a file for each job (`job_records.py`). Other accounts there cannot
read them, and values from there are checked before use: only regular files of our own user are
opened, never through a link, and only up to a limit.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from slackwater.actors.tuning.job_records import read_record, record_lines
from slackwater.runtime.config import Tuning
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plurals import count_of

__all__ = ["JobHistory", "SampleHistory", "in_order", "job_files", "most_samples"]

JOBS = 20
"""Files kept of one flow; the oldest are removed."""
LEAST_SECONDS = 2
"""A shorter job teaches nothing, and would displace one that does."""
NAME_LETTERS = 80
STALE_S = 600.0
"""Age of a file in the making that no job writes any more: writing takes less than a second."""


class SampleHistory:
    """Samples of one flow's jobs.

    Args:
        folder: folder of all flows.
        graph: graph of the flow; samples of other parts, and of intervals of another length, are
            omitted.
        most: most samples that are read, newest first.
    """

    def __init__(self, folder: Path, graph: FlowGraph, *, most: int) -> None:
        self._folder = folder / _folder_name(graph.flow)
        self._versions = graph.versions
        self._parts = {part.subject for part in graph.parts}
        self._interval_ns = graph.interval_ns
        self._most = most

    def load(self) -> tuple[list[StageSample], str]:
        """Return the samples, job after job, and a description of them."""
        jobs: list[list[StageSample]] = []
        count = unread = 0
        try:
            files = _files(self._folder)[-JOBS:]
        except OSError as problem:
            return [], f"not readable: {problem}"
        for path in reversed(files):
            if count >= self._most:
                break
            try:
                record = read_record(path)
            except SettingError:
                unread += 1  # tuning goes on without it
                continue
            samples = record.samples
            if samples and all(s.interval_ns != self._interval_ns for s in samples):
                continue
            jobs.append(self._known(samples))
            count += len(jobs[-1])
        newest = [sample for job in reversed(jobs) for sample in job][-self._most :]
        words = f"{len(newest):,} samples of {len(jobs)} earlier jobs"
        return newest, f"{words}, {count_of(unread, 'file')} could not be read" if unread else words

    def _known(self, samples: Iterable[StageSample]) -> list[StageSample]:
        length_ns = self._interval_ns
        return [s for s in samples if s.subject in self._parts and s.interval_ns == length_ns]

    def save(self, samples: Iterable[StageSample], *, job: str) -> str | None:
        """Keep the samples of a job; return why that failed, None if it did not.

        Args:
            samples: samples in any order.
            job: names the file; the jobs of a flow sort by it.
        """
        ordered = in_order(samples)
        if len({sample.second for sample in ordered}) < LEAST_SECONDS:
            return f"less than {LEAST_SECONDS} seconds of samples"
        lines = record_lines(ordered[-self._most :], self._versions)
        half_made = self._folder / f".{job}.incomplete"
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            _check_own(self._folder)
            self._clean()
            try:
                half_made.unlink(missing_ok=True)
                with open(half_made, "x", encoding="utf-8", opener=_private) as file:
                    file.writelines(lines)
                half_made.replace(self._folder / f"{job}.jsonl")
            finally:
                half_made.unlink(missing_ok=True)
            for path in _files(self._folder)[:-JOBS]:
                path.unlink(missing_ok=True)
        except OSError as problem:
            return str(problem)
        return None

    def _clean(self) -> None:
        # Jobs that were killed while they saved have left these.
        for path in self._folder.glob(".*.incomplete"):
            with suppress(FileNotFoundError):  # its job has just finished it
                if time.time() - path.stat().st_mtime > STALE_S:
                    path.unlink()


def job_files(folder: Path, flow: str) -> list[Path]:
    """Return the files that the jobs of a flow have left, newest first.

    Args:
        folder: folder of all flows.
        flow: name of the flow.

    Raises:
        OSError: the folder cannot be read, or is another user's.
    """
    return _files(folder / _folder_name(flow))[-JOBS:][::-1]


def _files(folder: Path) -> list[Path]:
    if not os.path.lexists(folder):
        return []
    _check_own(folder)
    return sorted(folder.glob("*.jsonl"))


def _check_own(folder: Path) -> None:
    # Another owner of the folder could put anything into it.
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{folder} is not a folder")
    if status.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is of user {status.st_uid}, not of ours")


class JobHistory:
    """Loads and saves one job's samples, if wanted; the same on both hosts.

    Attributes:
        words: words for the job's report, {"history": words}, or empty.
    """

    def __init__(self, graph: FlowGraph, tuning: Tuning | None) -> None:
        self._history: SampleHistory | None = None
        self.words: dict[str, str] = {}
        if tuning is not None and tuning.history is not None:
            most = most_samples(graph, tuning)
            self._history = SampleHistory(Path(tuning.history), graph, most=most)

    def load(self) -> list[StageSample]:
        """Return the samples of earlier jobs."""
        if self._history is None:
            return []
        samples, self.words["history"] = self._history.load()
        return samples

    def save(self, samples: Iterable[StageSample]) -> None:
        """Keep the samples of this job."""
        if self._history is None:
            return
        problem = self._history.save(samples, job=f"{time.time_ns()}")
        if problem is not None:
            read = self.words.get("history", "not read")
            self.words["history"] = f"not kept: {problem}; {read}"


def most_samples(graph: FlowGraph, tuning: Tuning | None) -> int:
    """Return how many samples of a flow are kept; default if nothing is tuned."""
    window_s = (Tuning() if tuning is None else tuning).window_s
    return max(window_s * NS_PER_SECOND // graph.interval_ns, 1) * len(graph.parts)


def in_order(samples: Iterable[StageSample]) -> list[StageSample]:
    """Return the samples of one job by ascending second: slots answer in any order."""
    return sorted(samples, key=lambda sample: sample.second)


def _folder_name(flow: str) -> str:
    """Return a flow's unique name in safe letters: changed names end in a hash."""
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", flow)[:NAME_LETTERS].strip("_.-")
    if safe == flow:
        return safe
    return f"{safe or 'flow'}-{hashlib.sha256(flow.encode(errors='replace')).hexdigest()[:8]}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
