"""Checkpoints of flows at random, through files: a run goes on from what is read."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from slackwater.actors.checkpoints.folder import commit, newest
from slackwater.actors.checkpoints.part_files import read_part, write_part
from slackwater.runtime.recovery.checkpoint import SlotPart
from tests.simulate.test_marks import had, marked, went_on
from tests.simulate.test_replacing import READY_ONLY_SEEDS, in_order
from tests.support.any_flow import any_flow
from tests.support.checkpoints import facts_of
from tests.support.plain_values import are_same


def through_files(folder: Path, number: int, parts: dict[str, SlotPart]) -> dict[str, SlotPart]:
    """Return parts as they are read after they were written, by slot."""
    entries = [write_part(folder, part) for part in parts.values()]
    manifest = commit(folder, number, entries, facts_of())
    version = entries[0].version
    assert newest(folder, facts_of(), version=version).checkpoint == manifest
    saved = {entry.slot: read_part(folder, entry) for entry in manifest.parts}
    for slot, part in parts.items():
        assert are_same(saved[slot]._asdict(), part._asdict()), f"checkpoint {number}, {slot}"
    return saved


@pytest.mark.parametrize("seed", READY_ONLY_SEEDS)
def test_a_run_goes_on_from_files_with_the_same_rows(seed: int, tmp_path: Path) -> None:
    plan = any_flow(seed)
    run, _ = marked(plan, seed)
    for number, parts, again, _ in went_on(plan, seed, run, partial(through_files, tmp_path)):
        whole = {sink: run.results[sink][: had(parts, sink)] + rows for sink, rows in again.items()}
        assert in_order(plan, whole) == in_order(plan, run.results), f"seed {seed}, {number}"
