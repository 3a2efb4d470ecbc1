"""Keep one job's samples in a file: JSON lines, the first about the job itself.

```
{"job": {"versions": {stage: digest}}}
{"step": "buses", "part": null, "second": 0, …}
```

Values read from a disk are checked before use.
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
from slackwater.runtime.shown import shown

__all__ = ["MOST_BYTES", "JobSamples", "read_record", "record_lines"]

MOST_BYTES = 2**26
"""Bytes of one file: 200,000 samples and more. A longer file is not read."""
MOST_COUNTED = 2**40
"""Most rows of one interval; sums over a whole file are still exact."""
COUNTS = frozenset(
    ["second", "rows", "slack_ready", "late", "readers", "held", "came", "handed", "slices"]
)


@dataclass(frozen=True)
class JobSamples:
    """Samples that one job has left.

    Attributes:
        samples: samples of all parts of the job's steps, in the order of the file.
        versions: {stage: a digest of what it did with a row}; empty: the file is of an earlier
            release, which kept none.
    """

    samples: Sequence[StageSample]
    versions: Mapping[str, str] = field(default_factory=dict)


def record_lines(samples: Iterable[StageSample], versions: Mapping[str, str]) -> list[str]:
    """Return the lines of a job's file, at most as many as may be read.

    Args:
        samples: seconds ascending; if there are too many, the oldest are omitted.
        versions: digests as in `JobSamples`.
    """
    lines = [json.dumps(sample.to_json()) + "\n" for sample in samples]
    first = json.dumps({"job": {"versions": dict(versions)}}) + "\n"
    while sum(map(len, lines)) > MOST_BYTES - len(first):
        del lines[: -(-len(lines) // 2)]
    return [first, *lines]


def read_record(path: Path) -> JobSamples:
    """Return the samples that a job has left.

    Raises:
        SettingError: the file is not a record of ours: another user's, a link, too long, half a
            file, or of another release; the error says which.
    """
    try:
        data = read_plain(path, most_bytes=MOST_BYTES, is_own=True)
    except OSError as problem:
        is_link = problem.errno == errno.ELOOP
        reason = f"{path} is a link" if is_link else str(problem)
        raise SettingError(f"file {path.name} is not read: {reason}") from problem
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
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            where = f"line {number} of {len(lines)}"
            half = ", half a file" if number == len(lines) else ""
            raise SettingError(
                f"file {path.name} has no sample in {where}{half}: {problem!r}"
            ) from problem
    return JobSamples(samples, versions)


def _versions(job: Any) -> dict[str, str]:
    versions = job["versions"]
    if not isinstance(versions, dict) or not all(isinstance(v, str) for v in versions.values()):
        raise TypeError(f"versions={versions!r} are not those of stages")
    return versions


def _checked(sample: StageSample) -> StageSample:
    """Return a sample whose numbers have 64 bits and whose counts a job can have.

    Raises:
        ValueError: a number is out of range.
    """
    for field_ in fields(sample):
        value = getattr(sample, field_.name)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"{field_.name}={value} has more than 64 bits")
        if field_.name in COUNTS and not 0 <= value <= MOST_COUNTED:
            raise ValueError(f"{field_.name}={value} is not a count of one interval")
    if sample.interval_ns < 1 or sample.busy_ns < 0:
        raise ValueError(f"interval_ns={sample.interval_ns}, busy_ns={sample.busy_ns}: no lengths")
    for trial in sample.tried:
        if not all(0 <= n < 2**63 for n in trial[1:]):
            raise ValueError(f"{shown(trial)} has a count below zero, or of more than 64 bits")
    for number, rows in sample.arrived:
        if not (-(2**63) <= number < 2**63 and 0 <= rows <= MOST_COUNTED):
            raise ValueError(f"arrived={sample.arrived!r} has a count that no interval has")
    return sample
