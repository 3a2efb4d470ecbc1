"""Checkpoints of flows at random, through files."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.actors.checkpoints.folder import commit, newest
from slackwater.actors.checkpoints.part_files import read_part, write_part
from slackwater.runtime.recovery.checkpoint import SlotPart
from tests.simulate.test_marks import marked
from tests.simulate.test_replacing import READY_ONLY_SEEDS
from tests.support.any_flow import any_flow
from tests.support.checkpoints import facts_of
from tests.support.plain_values import are_same


def check_through_files(folder: Path, number: int, parts: dict[str, SlotPart]) -> None:
    """Check that parts are read as they were written."""
    entries = [write_part(folder, part) for part in parts.values()]
    manifest = commit(folder, number, entries, facts_of())
    version = entries[0].version
    assert newest(folder, facts_of(), version=version).checkpoint == manifest
    saved = {entry.slot: read_part(folder, entry) for entry in manifest.parts}
    assert saved.keys() == parts.keys()
    for slot, part in parts.items():
        assert are_same(saved[slot]._asdict(), part._asdict()), f"checkpoint {number}, {slot}"


@pytest.mark.parametrize("seed", READY_ONLY_SEEDS)
def test_checkpoints_are_read_as_they_were_written(seed: int, tmp_path: Path) -> None:
    """So a run goes on from them as in `test_marks.py`."""
    run, _ = marked(any_flow(seed), seed)
    for number, taken in run.simulation.marks.taken.items():
        check_through_files(tmp_path, number, taken.parts)
