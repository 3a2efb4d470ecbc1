"""The file in which the samples of one job are kept: JSON lines, the first about the job itself.

```
{"job": {"versions": {stage: digest}}}
{"stage": "buses", "second": 0, …}
```

What comes back from a disk is looked at before it is used.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from slackwater.actors.kernel.plain_files import read_plain
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.samples import StageSample

__all__ = ["MOST_BYTES", "JobSamples", "read_record", "record_lines"]

MOST_BYTES = 2**26
"""Of one file: 200,000 samples and more. A longer one is not read."""
MOST_COUNTED = 2**40
"""Rows of one interval; sums of all that a file may have are still exact."""
COUNTS = frozenset(
    ["second", "rows", "slack_ready", "late", "readers", "held", "came", "handed", "slices"]
)


@dataclass(frozen=True)
class JobSamples:
    """What one job has left.

    Attributes:
        samples: of all its stages, in the order in which they were kept.
        versions: {stage: a digest of what it did with a row}; empty: of an earlier release, which
            kept none.
    """

    samples: Sequence[StageSample]
    versions: Mapping[str, str] = field(default_factory=dict)


def record_lines(samples: Iterable[StageSample], versions: Mapping[str, str]) -> list[str]:
    """Return the lines of a job's file, those of its samples not longer than may be read.

    Args:
        samples: seconds ascending; where there are too many, the oldest are left out.
        versions: as of `JobSamples`.
    """
    lines = [json.dumps(sample.to_json()) + "\n" for sample in samples]
    first = json.dumps({"job": {"versions": dict(versions)}}) + "\n"
    while sum(map(len, lines)) > MOST_BYTES - len(first):
        del lines[: -(-len(lines) // 2)]
    return [first, *lines]


def read_record(path: Path) -> JobSamples:
    """Return what a job has left.

    Raises:
        SettingError: the file is no record of ours: it is another user's, a link, too long, half a
            file, or of another release; the error says which.
    """
    try:
        data = read_plain(path, most_bytes=MOST_BYTES, is_own=True)
    except OSError as problem:
        is_link = problem.errno == errno.ELOOP
        said = f"{path} is a link" if is_link else str(problem)
        raise SettingError(f"file {path.name} is not read: {said}") from problem
    lines = data.splitlines()
    versions: Mapping[str, str] = {}
    samples = []
    for number, line in enumerate(lines, 1):
        try:
            plain = json.loads(line)
            if number == 1 and isinstance(plain, dict) and "job" in plain:
                versions = _versions(plain["job"])
            else:
                samples.append(_checked(StageSample.from_json(plain)))
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            where = f"line {number} of {len(lines)}"
            half = ", half a file" if number == len(lines) else ""
            raise SettingError(
                f"file {path.name} has no sample in {where}{half}: {problem!r}"
            ) from problem
    return JobSamples(samples, versions)


def _versions(job: Any) -> dict[str, str]:
    found = job["versions"]
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise TypeError(f"versions={found!r} are not those of stages")
    return found


def _checked(sample: StageSample) -> StageSample:
    """Return a sample whose numbers are numbers, of 64 bits, and counts none that no job has.

    Raises:
        TypeError, ValueError: they are not.
    """
    if not isinstance(sample.stage, str):
        raise TypeError(f"stage={sample.stage!r} is no name")
    if type(sample.ended) is not bool:
        raise TypeError(f"ended={sample.ended!r} is neither true nor false")
    for one in fields(sample):
        value = getattr(sample, one.name)
        if one.name in (
            "stage",
            "rule",
            "tried",
            "arrived",
            "ended",
        ):  # a rule was checked when it was made
            continue
        if type(value) is not int:
            raise TypeError(f"{one.name}={value!r} is no whole number")
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{one.name}={value} has more than 64 bits")
        if one.name in COUNTS and not 0 <= value <= MOST_COUNTED:
            raise ValueError(f"{one.name}={value} is no count of one interval")
    if sample.interval_ns < 1 or sample.busy_ns < 0:
        raise ValueError(f"interval_ns={sample.interval_ns}, busy_ns={sample.busy_ns}: no lengths")
    for tried in sample.tried:
        name, *counts = tried
        if not isinstance(name, str) or any(type(n) is not int for n in counts):
            raise TypeError(f"{tried!r} is no trial")
        if not all(0 <= n < 2**63 for n in counts):
            raise ValueError(f"{tried!r} has a count below zero, or of more than 64 bits")
    _check_arrived(sample)
    return sample


def _check_arrived(sample: StageSample) -> None:
    if any(type(n) is not int or not -(2**63) <= n < 2**63 for one in sample.arrived for n in one):
        raise TypeError(f"arrived={sample.arrived!r} is not made of whole numbers")
    if not all(0 <= rows <= MOST_COUNTED for _, rows in sample.arrived):
        raise ValueError(f"arrived={sample.arrived!r} has a count that no interval has")
