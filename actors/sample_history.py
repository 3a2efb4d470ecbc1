"""Samples that outlive their job: what the next job of the same flow is tuned by from the start.

A folder on the tuner's host, a file for each job: JSON lines, one sample each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from runtime.flow.plan import Plan
from runtime.measure.samples import StageSample

__all__ = ["SampleHistory", "in_order"]

JOBS = 20
"""Files that are kept of one flow; the oldest go."""


class SampleHistory:
    """The samples of one flow's jobs.

    Args:
        folder: of all flows.
        plan: of the flow; samples of stages that it does not have are left out.
        most: how many samples are read, the newest.
    """

    def __init__(self, folder: Path, plan: Plan, *, most: int) -> None:
        safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", plan.flow).strip("_.-") or "flow"
        self._folder = folder / safe
        self._stages = {stage.name for stage in plan.stages}
        self._most = most

    def load(self) -> tuple[list[StageSample], str]:
        """Return the samples, job after job, and in a few words what that was."""
        jobs: list[list[StageSample]] = []
        count = unread = 0
        try:
            files = self._files()
        except OSError as problem:
            return [], f"not readable: {problem}"
        for path in reversed(files):
            if count >= self._most:
                break
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
                samples = [StageSample.from_json(json.loads(line)) for line in lines]
            except (OSError, ValueError, KeyError, TypeError):
                unread += 1  # half a file, or one of another version: tuning goes on without
                continue
            jobs.append([one for one in samples if one.stage in self._stages])
            count += len(jobs[-1])
        found = [sample for job in reversed(jobs) for sample in job][-self._most :]
        words = f"{len(found):,} samples of {len(jobs)} earlier jobs"
        return found, f"{words}, {unread} files could not be read" if unread else words

    def save(self, samples: Iterable[StageSample], *, job: str) -> str | None:
        """Keep the samples of a job; return why that was not possible, None if it was.

        Args:
            samples: in any order.
            job: names the file; the jobs of a flow sort by it.
        """
        lines = [json.dumps(sample.to_json()) + "\n" for sample in in_order(samples)]
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            half_made = self._folder / f".{job}.incomplete"
            half_made.write_text("".join(lines), encoding="utf-8")
            half_made.replace(self._folder / f"{job}.jsonl")
            for path in self._files()[:-JOBS]:
                path.unlink(missing_ok=True)
        except OSError as problem:
            return str(problem)
        return None

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.jsonl")) if self._folder.exists() else []


def in_order(samples: Iterable[StageSample]) -> list[StageSample]:
    """Return the samples of one job, seconds ascending: slots answer as they can."""
    return sorted(samples, key=lambda sample: sample.second)
