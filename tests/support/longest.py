"""Which files of pure tests take the longest, so that they come first."""

from __future__ import annotations

from pathlib import Path

LONGEST = (
    "tests/contract/test_operators.py",
    "tests/merge/test_replica.py",
    "tests/operators/test_aggregate_machine.py",
    "tests/tune/decide/test_tuner.py",
    "tests/tune/predict/test_estimator.py",
    "tests/actors/wire/test_channel.py",
    "tests/actors/wire/test_hostile_peers.py",
    "tests/actors/wire/test_hostile_frames.py",
    "tests/simulate/test_restarts.py",
    "tests/slackwater/report/test_picture.py",
    "tests/simulate/test_whole_flows.py",
    "tests/simulate/test_replicas.py",
    "tests/schedule/test_keep.py",
)
"""Of the pure files those that take the longest: none of them may come last, on one core alone."""


def is_among_longest(file: Path, root: Path) -> bool:
    """Return whether a file of tests is to come before the others of its kind."""
    return file.is_relative_to(root) and file.relative_to(root).as_posix() in LONGEST
