"""Folders of checkpoints: what is complete, what can be used, what goes."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.actors.checkpoints.file_names import (
    hidden_path,
    manifest_name,
    part_name,
    spare_path,
)
from slackwater.actors.checkpoints.folder import (
    commit,
    division_in,
    keep_out_of_git,
    newest,
    next_number,
    prune,
    remove,
    remove_empty,
    remove_newer,
    rename,
    size,
    take_lock,
)
from slackwater.actors.checkpoints.part_files import read_part, write_part
from slackwater.actors.checkpoints.spool import SpoolName
from slackwater.actors.sinks.lock import Lock
from slackwater.runtime.errors import CheckpointError
from slackwater.runtime.plan.division import UNDIVIDED, Division
from slackwater.runtime.recovery.manifest import FORMAT, CheckpointManifest, Newest
from tests.support.any_flow import any_flow
from tests.support.checkpoints import VERSION, facts_of, part_of
from tests.support.plain_values import are_same

SLOTS = ("node-1", "node-2")


def taken(folder: Path, number: int, **facts: object) -> CheckpointManifest:
    entries = [write_part(folder, part_of(slot, number)) for slot in SLOTS]
    return commit(folder, number, entries, facts_of(**facts))


def looked_up(folder: Path, **facts: object) -> Newest:
    return newest(folder, facts_of(**facts), version=VERSION)


def locked(folder: Path, job: str = "city-1") -> Lock:
    lock, note = take_lock(folder, job=job, flow="city", has_ended=lambda _: False)
    assert note is None
    return lock


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_newest_is_what_was_committed(tmp_path: Path) -> None:
    taken(tmp_path, 1)
    manifest = taken(tmp_path, 2)
    assert looked_up(tmp_path) == Newest(manifest)
    for part in manifest.parts:
        assert are_same(read_part(tmp_path, part)._asdict(), part_of(part.slot, 2)._asdict())
    assert next_number(tmp_path) == 3
    assert size(tmp_path) == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_an_empty_and_a_missing_folder_have_none(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "gone"):
        assert looked_up(folder) == Newest(None)
        assert (next_number(folder), size(folder), prune(folder, "city")) == (1, 0, [])


def test_parts_without_a_manifest_are_no_checkpoint(tmp_path: Path) -> None:
    manifest = taken(tmp_path, 1)
    write_part(tmp_path, part_of(number=2))
    assert looked_up(tmp_path) == Newest(manifest)
    assert next_number(tmp_path) == 3


def test_files_are_for_us_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "checkpoints"
    before = os.umask(0o022)
    try:
        locked(folder)
        taken(folder, 1)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert [stat.S_IMODE(made.stat().st_mode) for made in (folder, folder.parent)] == [0o700] * 2


def test_each_damaged_byte_of_a_part_leads_to_the_one_before(tmp_path: Path) -> None:
    before, last = taken(tmp_path, 1), taken(tmp_path, 2)
    path = tmp_path / last.parts[1].file
    whole = path.read_bytes()
    for place in range(0, len(whole), 500):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        found = looked_up(tmp_path)
        assert found.checkpoint == before
        assert [refused.kind for refused in found.refused] == ["damaged"]
        assert "checkpoint 2: " in found.refused[0].reason
        assert "node-2" in found.refused[0].reason


def test_each_damaged_byte_of_a_manifest_leads_to_the_one_before(tmp_path: Path) -> None:
    before = taken(tmp_path, 1)
    taken(tmp_path, 2)
    path = tmp_path / manifest_name(2)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        found = looked_up(tmp_path)
        assert found.checkpoint == before, place
        assert found.refused[0].number == 2


def test_a_manifest_that_a_power_cut_left_short_is_passed_over(tmp_path: Path) -> None:
    before = taken(tmp_path, 1)
    taken(tmp_path, 2)
    whole = (tmp_path / manifest_name(2)).read_bytes()
    for left in range(0, len(whole), 50):
        (tmp_path / manifest_name(2)).write_bytes(whole[:left])
        found = looked_up(tmp_path)
        assert found.checkpoint == before
        assert [refused.kind for refused in found.refused] == ["damaged"]


def test_a_missing_part_leads_to_the_one_before(tmp_path: Path) -> None:
    before, last = taken(tmp_path, 1), taken(tmp_path, 2)
    (tmp_path / last.parts[0].file).unlink()
    found = looked_up(tmp_path)
    assert found.checkpoint == before
    assert found.refused[0].kind == "missing"
    assert "part of slot 'node-1', is missing" in found.refused[0].reason


def test_a_job_begins_from_an_older_checkpoint_where_the_same_rows_come_again(
    tmp_path: Path,
) -> None:
    _, last = taken(tmp_path, 1), taken(tmp_path, 2)
    assert looked_up(tmp_path).why_not(is_repeatable=False) is None
    (tmp_path / last.parts[0].file).unlink()
    known = looked_up(tmp_path)
    assert known.why_not(is_repeatable=True) is None
    problem = known.why_not(is_repeatable=False) or ""
    assert "checkpoint 2: " in problem
    assert "is missing, and older ones lack rows that left since; bring its files back" in problem


def test_a_job_does_not_begin_again_where_all_checkpoints_are_damaged(tmp_path: Path) -> None:
    assert looked_up(tmp_path).why_not(is_repeatable=True) is None, "nothing was there"
    for number in (1, 2):
        for part in taken(tmp_path, number).parts:
            (tmp_path / part.file).unlink()
    problem = looked_up(tmp_path).why_not(is_repeatable=True) or ""
    assert problem.startswith("checkpoint 2: ")
    assert "choose another folder, and empty sinks, to begin again" in problem


def test_a_checkpoint_of_another_version_comes_before_damage_as_the_reason(tmp_path: Path) -> None:
    _, last = taken(tmp_path, 1), taken(tmp_path, 2)
    (tmp_path / last.parts[0].file).unlink()
    known = newest(tmp_path, facts_of(), version=VERSION + 1)
    assert "snapshots of version" in (known.why_not(is_repeatable=True) or "")


def test_another_format_or_snapshot_is_refused_with_the_way_out(tmp_path: Path) -> None:
    taken(tmp_path, 1)
    found = newest(tmp_path, facts_of(), version=VERSION + 1)
    assert [refused.kind for refused in found.refused] == ["version"]
    assert "go on with slackwater 0.1.0 that wrote it" in found.refused[0].reason
    path = tmp_path / manifest_name(1)
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "slackwater_checkpoint": FORMAT + 1})
    )
    found = looked_up(tmp_path)
    assert [refused.kind for refused in found.refused] == ["version"]
    formats = f"has format {FORMAT + 1}, and this release reads format {FORMAT}; go on with"
    assert formats in found.refused[0].reason


def test_another_flow_is_refused_with_the_names_that_differ(tmp_path: Path) -> None:
    manifest = taken(tmp_path, 1)
    then = manifest.facts.fingerprint
    (other,) = looked_up(tmp_path, flow="town").refused
    assert "of flow 'city', and this is flow 'town'" in other.reason
    for changed, names, way_out in (
        ({"steps": {"jams": "new", "out": "d2"}}, "steps differ (jams)", "as it was"),
        ({"settings": {"slack": "2s"}}, "settings differ (slack: d3, now 2s)", "as it was"),
        ({"schemas": {"jams": "d4", "out": "d5"}}, "schemas differ (jams, out)", "as it was"),
        ({"stages": {"jams": "3"}}, "(jams: none, now 3)", "as many replicas= and slots"),
    ):
        (refused,) = looked_up(tmp_path, fingerprint={**then, **changed}).refused
        assert refused.kind == "flow"
        assert names in refused.reason
        assert way_out in refused.reason
        assert refused.reason.endswith("or without (checkpoint=None)")
    assert looked_up(tmp_path).checkpoint == manifest


def test_a_manifest_names_the_parts_that_have_a_stage(tmp_path: Path) -> None:
    manifest = taken(tmp_path, 1)
    (stage,) = [s for s in any_flow(0).stages if s.name == "s0"]
    assert manifest.parts_of([]) == ()
    assert manifest.parts_of([stage]) == manifest.parts


def test_a_checkpoint_is_committed_once_and_whole(tmp_path: Path) -> None:
    manifest = taken(tmp_path, 1)
    with pytest.raises(CheckpointError, match=r"checkpoint 1 is in .* give another number"):
        commit(tmp_path, 1, manifest.parts, facts_of())
    for wrong in ({"file": part_name(2, "node-1")}, {"bytes": 7}):
        parts = [replace(manifest.parts[0], **wrong), manifest.parts[1]]
        with pytest.raises(CheckpointError, match=r"node-1.*give a folder that all nodes share"):
            commit(tmp_path, 2, parts, facts_of())
    assert manifest_name(2) not in names(tmp_path)


def test_the_last_three_stay_and_those_that_are_referred_to(tmp_path: Path) -> None:
    for number in range(1, 8):
        taken(tmp_path, number)
    gone = prune(tmp_path, "city", refers=[2])
    assert len(gone) == 3 * 3
    left = {name.split(".")[0].split("-")[1] for name in names(tmp_path) if name[0] != "."}
    assert sorted(map(int, left)) == [2, 5, 6, 7]
    assert looked_up(tmp_path).checkpoint is not None
    assert prune(tmp_path, "city", refers=[2]) == []


def test_a_part_that_goes_is_written_over_by_the_next_of_its_slot(tmp_path: Path) -> None:
    for number in range(1, 5):
        taken(tmp_path, number)
    prune(tmp_path, "city")
    spares = [spare_path(tmp_path, slot) for slot in SLOTS]
    room = [path.stat().st_ino for path in spares]
    spares[0].write_bytes(b"x" * 10**6)  # longer than what comes
    manifest = taken(tmp_path, 5)
    assert not any(path.exists() for path in spares)
    for part, own in zip(manifest.parts, room, strict=True):
        path = tmp_path / part.file
        assert (path.stat().st_ino, stat.S_IMODE(path.stat().st_mode)) == (own, 0o600)
        assert are_same(read_part(tmp_path, part)._asdict(), part_of(part.slot, 5)._asdict())


def test_a_spare_file_with_another_name_is_not_written_over(tmp_path: Path) -> None:
    spare, kept = spare_path(tmp_path, "node-1"), tmp_path / "kept"
    spare.write_bytes(b"of a copy by links")
    kept.hardlink_to(spare)
    entry = write_part(tmp_path, part_of("node-1", 1))
    assert kept.read_bytes() == b"of a copy by links"
    assert are_same(read_part(tmp_path, entry)._asdict(), part_of("node-1", 1)._asdict())


def test_spare_files_go_with_their_slot_and_with_the_job(tmp_path: Path) -> None:
    gone, stays = spare_path(tmp_path, "node-9"), spare_path(tmp_path, "node-1")
    for path in (gone, stays):
        path.touch()
    taken(tmp_path, 1)
    stays.touch()
    assert prune(tmp_path, "city") == [gone.name]
    assert stays.exists()
    remove(tmp_path, "city")
    assert names(tmp_path) == set()


def test_what_dead_writers_left_goes_and_what_is_written_now_stays(tmp_path: Path) -> None:
    taken(tmp_path, 1)
    stray = write_part(tmp_path, part_of(number=1)).file
    half = write_part(tmp_path, part_of(number=2)).file
    now = write_part(tmp_path, part_of(number=3)).file
    hidden = [hidden_path(tmp_path, name(2)) for name in (manifest_name, _part)]
    for path in hidden:
        path.touch()
    hidden_now = hidden_path(tmp_path, _part(3))
    hidden_now.touch()
    assert {*prune(tmp_path, "city", writing=[3])} == {stray, half, *(path.name for path in hidden)}
    assert {now, hidden_now.name, manifest_name(1)} <= names(tmp_path)
    assert {*prune(tmp_path, "city")} == {now, hidden_now.name}


def _part(number: int) -> str:
    return part_name(number, "node-1")


def test_nothing_that_is_not_ours_goes(tmp_path: Path) -> None:
    others = ["notes.txt", "checkpoint-1.json", "checkpoint-00000001.json.bak", ".slackwater.lock"]
    for name in others:
        (tmp_path / name).write_text("{}")
    (tmp_path / manifest_name(9)).mkdir()
    (tmp_path / part_name(1, "link")).symlink_to(tmp_path / "notes.txt")
    before = names(tmp_path)
    town = [taken(tmp_path, number, flow="town") for number in range(1, 5)]
    newer = taken(tmp_path, 5)
    path = tmp_path / manifest_name(5)
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "slackwater_checkpoint": FORMAT + 1})
    )
    for number in range(6, 10):
        taken(tmp_path, number + 4)
    prune(tmp_path, "city")
    assert before <= names(tmp_path)
    for manifest in (*town, newer):
        assert {part.file for part in manifest.parts} <= names(tmp_path)
        assert manifest_name(manifest.number) in names(tmp_path)


def test_all_checkpoints_of_a_flow_go_and_those_of_others_stay(tmp_path: Path) -> None:
    taken(tmp_path, 1)
    town = taken(tmp_path, 2, flow="town")
    write_part(tmp_path, part_of(number=3))
    remove(tmp_path, "city")
    assert names(tmp_path) == {manifest_name(2), *(part.file for part in town.parts)}


def test_checkpoints_after_the_one_that_a_job_goes_back_to_go(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        taken(tmp_path, number)
    town = taken(tmp_path, 4, flow="town")
    remove_newer(tmp_path, "city", 1)
    looked = looked_up(tmp_path)
    assert looked.checkpoint is not None
    assert looked.checkpoint.number == 1
    assert {file for file in names(tmp_path) if "00000002" in file or "00000003" in file} == set()
    assert {manifest_name(4), *(part.file for part in town.parts)} <= names(tmp_path)


def test_a_damaged_checkpoint_goes_once_three_newer_are_complete(tmp_path: Path) -> None:
    for number in range(1, 4):
        taken(tmp_path, number)
    (tmp_path / manifest_name(1)).write_text("{")
    assert prune(tmp_path, "city") == []
    taken(tmp_path, 4)
    assert len(prune(tmp_path, "city")) == 3
    assert manifest_name(1) not in names(tmp_path)


def test_a_second_job_is_refused_by_the_name_of_the_first(tmp_path: Path) -> None:
    first = locked(tmp_path)
    refused = r"checkpoints: .*lock belongs to job 'city-1' \(checkpoints, process .*stop that job"
    with pytest.raises(CheckpointError, match=refused):
        locked(tmp_path, "city-2")
    first.release()
    second = locked(tmp_path, "city-2")
    with pytest.raises(CheckpointError, match=r"checkpoints: .* taken from us"):
        first.check()
    second.release()
    assert names(tmp_path) == set()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"file is not a folder: move it away"):
        locked(tmp_path / "file")
    with pytest.raises(CheckpointError, match=r"file is not a folder: move it away"):
        newest(tmp_path / "file", facts_of(), version=VERSION)


def test_spools_of_a_renamed_source_have_its_new_name(tmp_path: Path) -> None:
    then, now = (SpoolName(tmp_path, "city", name) for name in ("rides", "trips"))
    for number in (1, 2):
        then.path(number).write_bytes(b"x" * number)
    for _ in range(2):  # it may have been broken off
        rename(tmp_path, "city", {"rides": "trips", "jams": "queues"})
        assert (then.sizes(), now.sizes()) == ({}, {1: 1, 2: 2})


def test_a_folder_says_into_how_many_stages_steps_were_divided(tmp_path: Path) -> None:
    assert division_in(tmp_path / "none", "city") == UNDIVIDED
    stages, partitions = {"stages": {"sums": "4", "trips": "2"}}, {"trips": ("a", "b", "c")}
    taken(tmp_path, 1, fingerprint=stages, partitions=partitions)
    assert division_in(tmp_path, "city") == Division({"sums": 4, "trips": 2}, partitions)
    taken(tmp_path, 2, flow="another")
    (tmp_path / manifest_name(3)).write_bytes(b"{}")
    assert division_in(tmp_path, "city").stages["sums"] == 4


def test_a_folder_that_nobody_named_is_ignored_by_git_and_goes_with_that(tmp_path: Path) -> None:
    whole = tmp_path / ".slackwater"
    for name in ("a", "b"):
        (whole / name).mkdir(parents=True)
        keep_out_of_git(whole / name)
    assert (whole / ".gitignore").read_text() == "*\n"
    remove_empty(whole / "a")
    assert sorted(path.name for path in whole.iterdir()) == [".gitignore", "b"]
    remove_empty(whole / "b")
    assert not whole.exists()


def test_a_gitignore_of_the_user_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    (tmp_path / "flow").mkdir()
    keep_out_of_git(tmp_path / "flow")
    remove_empty(tmp_path / "flow")
    assert (tmp_path / ".gitignore").read_text() == "*.pyc\n"
