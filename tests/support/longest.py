"""Which files of pure tests take the longest, so that they come first."""

from __future__ import annotations

from pathlib import Path

LONGEST = (
    "tests/actors/sinks/test_commits.py",
    "tests/actors/sinks/test_positions.py",
    "tests/actors/slot/test_silence.py",
    "tests/actors/slot/test_without_pandas.py",
    "tests/actors/wire/test_channel.py",
    "tests/actors/wire/test_hostile_peers.py",
    "tests/contract/test_bad_stretches.py",
    "tests/contract/test_operators.py",
    "tests/contract/test_slots.py",
    "tests/contract/test_types.py",
    "tests/foresight/chosen/test_plan_choice.py",
    "tests/foresight/chosen/test_replica_choice.py",
    "tests/foresight/observed/test_history.py",
    "tests/foresight/predicted/test_gate_waits.py",
    "tests/foresight/predicted/test_held_against.py",
    "tests/foresight/predicted/test_links_predicted.py",
    "tests/foresight/predicted/test_prediction.py",
    "tests/foresight/predicted/test_shed_predicted.py",
    "tests/foresight/test_live.py",
    "tests/ingest/test_positions.py",
    "tests/ingest/test_push.py",
    "tests/operators/test_aggregate_functions.py",
    "tests/operators/test_event_drops.py",
    "tests/operators/test_kit.py",
    "tests/operators/test_nothing_shed.py",
    "tests/operators/test_pattern_shedding.py",
    "tests/operators/test_what_if.py",
    "tests/simulate/test_aggregates_of_replicas.py",
    "tests/simulate/test_any_end.py",
    "tests/simulate/test_any_recovery.py",
    "tests/simulate/test_failed_jobs.py",
    "tests/simulate/test_far_tuner.py",
    "tests/simulate/test_marks.py",
    "tests/simulate/test_one_command_a_step.py",
    "tests/simulate/test_policy_host.py",
    "tests/simulate/test_recovery.py",
    "tests/simulate/test_renamed_steps.py",
    "tests/simulate/test_replacing.py",
    "tests/simulate/test_replicas.py",
    "tests/simulate/test_rewritten_flows.py",
    "tests/simulate/test_shedding_bound.py",
    "tests/simulate/test_whole_flows.py",
    "tests/slackwater/cli/test_main.py",
    "tests/slackwater/test_deadlines_page.py",
    "tests/test_first_hour.py",
    "tests/test_layers.py",
    "tests/test_readme.py",
    "tests/tune/decide/test_tuner.py",
)
"""Of the pure files those that take the longest: none of them may come last, on one core alone."""


def is_among_longest(file: Path, root: Path) -> bool:
    """Return whether a file of tests is to come before the others of its kind."""
    return file.is_relative_to(root) and file.relative_to(root).as_posix() in LONGEST
