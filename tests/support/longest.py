"""Which files of pure tests take the longest, so that they come first."""

from __future__ import annotations

from pathlib import Path

LONGEST = (
    "tests/actors/wire/test_channel.py",
    "tests/actors/wire/test_hostile_frames.py",
    "tests/actors/wire/test_hostile_peers.py",
    "tests/benchmarks/sltuner/floor/test_floor.py",
    "tests/contract/test_operators.py",
    "tests/contract/test_slots.py",
    "tests/foresight/predicted/test_gate_waits.py",
    "tests/foresight/predicted/test_held_against.py",
    "tests/foresight/test_live.py",
    "tests/foresight/test_orders.py",
    "tests/ingest/test_push.py",
    "tests/merge/test_replica.py",
    "tests/operators/test_aggregate_machine.py",
    "tests/operators/test_kit.py",
    "tests/schedule/test_keep.py",
    "tests/simulate/test_any_end.py",
    "tests/simulate/test_failed_jobs.py",
    "tests/simulate/test_far_tuner.py",
    "tests/simulate/test_policy_host.py",
    "tests/simulate/test_replacing.py",
    "tests/simulate/test_replicas.py",
    "tests/simulate/test_whole_flows.py",
    "tests/slackwater/cli/test_main.py",
    "tests/slackwater/report/test_picture.py",
    "tests/test_first_hour.py",
    "tests/test_layers.py",
    "tests/test_readme.py",
    "tests/tune/decide/test_model_rule.py",
    "tests/tune/decide/test_tuner.py",
)
"""Of the pure files those that take the longest: none of them may come last, on one core alone."""


def is_among_longest(file: Path, root: Path) -> bool:
    """Return whether a file of tests is to come before the others of its kind."""
    return file.is_relative_to(root) and file.relative_to(root).as_posix() in LONGEST
