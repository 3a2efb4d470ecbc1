"""What a folder of results promises: whole parts only, one writer, nothing foreign touched."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slackwater.actors.sinks.outputs import csv_sink, jsonl_sink, parquet_sink
from slackwater.runtime.errors import SettingError, SinkError
from slackwater.runtime.sinks.fingerprint import InputPrint
from tests.support.sinks import (
    MARKS,
    RUN,
    SECOND,
    Clock,
    Driven,
    manifest,
    opened,
    rows,
    seen,
    shown,
    write_all,
    write_row_by_row,
)

# -- what is published, and when ---------------------------------------------------------------


@pytest.mark.parametrize("of", [parquet_sink, jsonl_sink, csv_sink])
def test_a_live_sink_publishes_what_has_waited_for_its_interval_though_no_rows_come(
    tmp_path: Path, of: Any
) -> None:
    clock = Clock()
    sink = opened(of(tmp_path / "out", every="10s", rows=1_000), clock_ns=clock)
    assert sink.due_ns is None
    clock.now_ns = 5 * SECOND
    sink.write(rows(0, 3))
    assert sink.due_ns == 15 * SECOND
    assert (sink.progress.published, sink.progress.waiting) == (0, 3)
    clock.now_ns = 15 * SECOND - 1
    sink.publish_due()
    assert seen(tmp_path / "out") == []
    clock.now_ns += 1
    sink.publish_due()
    assert seen(tmp_path / "out") == [0, 1, 2]
    assert sink.due_ns is None
    assert (sink.progress.published, sink.progress.waiting, sink.progress.parts) == (3, 0, 1)
    first = shown(tmp_path / "out")
    sink.write(rows(3, 1_001))
    assert len(seen(tmp_path / "out")) == 1_003  # full, before it was due
    sink.close()
    assert seen(tmp_path / "out") == list(range(1_004))
    assert first.items() <= shown(tmp_path / "out").items()


def test_a_manifest_says_which_parts_of_which_run_and_how_far(tmp_path: Path) -> None:
    sink = opened(jsonl_sink(tmp_path, rows=4))
    sink.write(rows(0, 6), np.arange(100, 106))
    during = manifest(tmp_path)
    assert (during["run"]["state"], during["rows"]) == ("writing", 4)
    assert during["parts"] == [["part-00000001.jsonl", 4, 4 * len('{"n": 0}\n'), 103]]
    sink.close()
    after = manifest(tmp_path)
    assert (after["run"]["job"], after["run"]["state"]) == ("first-1", "done")
    assert after["rows"] == 6
    assert after["schema"] == [["n", "int64"]]
    assert after["fingerprint"]["inputs"] == {"buses": ["1 file of 9 bytes", "d1"]}
    assert (after["epoch"], after["offsets"]) == (0, {})
    assert not (tmp_path / ".slackwater.lock").exists()


@pytest.mark.parametrize("of", [parquet_sink, jsonl_sink, csv_sink])
def test_after_a_failure_elsewhere_no_partial_part_is_shown_and_the_manifest_says_so(
    tmp_path: Path, of: Any
) -> None:
    sink = opened(of(tmp_path, rows=5))
    sink.write(rows(0, 13))
    sink.abort("the worker of slot 'node-2' died")
    sink.abort("again")
    sink.close()
    assert seen(tmp_path) == list(range(10))
    assert sink.progress.waiting == 3
    assert manifest(tmp_path)["run"]["state"] == "failed"
    assert "node-2" in manifest(tmp_path)["run"]["error"]
    assert not (tmp_path / ".slackwater.lock").exists()
    hidden = [path.name for path in tmp_path.glob(".*.incomplete")]
    assert len(hidden) == (of is not parquet_sink)  # its lines can still be looked at
    (tmp_path / ".mine.incomplete").touch()
    again = write_all(of(tmp_path, rows=5, resume=True))
    assert seen(tmp_path) == list(range(17))
    assert again.skipped == 10
    assert [path.name for path in tmp_path.glob(".*.incomplete")] == [".mine.incomplete"]


@pytest.mark.parametrize("options", [{"every": "1s"}, {"rows": 5}])
@pytest.mark.parametrize("of", [parquet_sink, jsonl_sink, csv_sink])
def test_publishing_as_one_goes_needs_a_folder(of: Any, options: dict[str, Any]) -> None:
    ending = of.__name__.removesuffix("_sink")
    with pytest.raises(SettingError, match=f"{next(iter(options))}= publishes .* needs a folder"):
        of(f"out.{ending}", **options)
    assert not of("out", **options).is_file


def test_options_that_exclude_each_other_or_make_no_sense_are_refused() -> None:
    with pytest.raises(SettingError, match="choose one"):
        parquet_sink("out", overwrite=True, resume=True)
    with pytest.raises(SettingError, match="rows=0 must be"):
        parquet_sink("out", rows=0)
    with pytest.raises(SettingError, match="every='0s' must be more than zero"):
        jsonl_sink("out", every="0s")


# -- what overwrite touches --------------------------------------------------------------------


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_that_no_manifest_of_ours_names_are_never_touched(
    tmp_path: Path, overwrite: bool
) -> None:
    for of in (parquet_sink, jsonl_sink, csv_sink):
        ending = of.__name__.removesuffix("_sink")
        folder = tmp_path / ending
        folder.mkdir()
        (folder / f"input.{ending}").write_bytes(b"somebody's")
        (tmp_path / f"one.{ending}").write_bytes(b"somebody's")
        for place in (folder, tmp_path / f"one.{ending}"):
            with pytest.raises(SinkError, match=f"{ending} is there already, and no manifest"):
                opened(of(place, overwrite=overwrite))
        assert (folder / f"input.{ending}").read_bytes() == b"somebody's"
        assert (tmp_path / f"one.{ending}").read_bytes() == b"somebody's"


@pytest.mark.parametrize("name", ["out", "one.jsonl"])
def test_overwrite_replaces_the_old_when_the_new_is_whole(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    write_all(jsonl_sink(place), count=5)
    (tmp_path / name).parent.joinpath("notes.jsonl").write_text("{}")
    sink = opened(jsonl_sink(place, overwrite=True), replace(RUN, job="second"))
    sink.write(rows(100, 3))
    assert seen(place) == list(range(5))
    sink.abort("some failure")
    assert seen(place) == list(range(5))
    if name == "out":
        told = manifest(place)
        assert (told["run"]["state"], told["failed"]["job"]) == ("done", "second")
    sink = opened(jsonl_sink(place, overwrite=True))
    sink.write(rows(100, 3))
    sink.close()
    assert seen(place) == [100, 101, 102]
    assert (tmp_path / "notes.jsonl").read_text() == "{}"


def test_an_overwrite_that_is_stopped_before_any_row_leaves_the_old(tmp_path: Path) -> None:
    write_all(jsonl_sink(tmp_path))
    opened(jsonl_sink(tmp_path, overwrite=True)).close("stopped")
    assert seen(tmp_path) == list(range(17))
    assert not (tmp_path / ".slackwater.lock").exists()


@pytest.mark.parametrize("of", [jsonl_sink, parquet_sink, csv_sink])
@pytest.mark.parametrize("name", ["out", "one"])
def test_an_overwrite_that_is_stopped_before_its_end_leaves_the_old(
    tmp_path: Path, name: str, of: Any
) -> None:
    place = tmp_path / (name if name == "out" else f"one.{of.__name__.removesuffix('_sink')}")
    write_all(of(place), count=5)
    before = shown(place.parent if place.is_file() else place)
    sink = opened(of(place, overwrite=True), replace(RUN, job="second"))
    sink.write(rows(100, 3))
    sink.close("stopped")
    sink.close("stopped")
    assert shown(place.parent if place.is_file() else place) == before
    (note,) = sink.progress.notes
    assert note.startswith("the output of job 'first-1' stays: this job was stopped before")
    assert (sink.progress.published, sink.progress.waiting) == (0, 3)
    if name == "out":
        told = manifest(place)
        assert (told["run"]["state"], told["rows"]) == ("done", 5)
        assert (told["failed"]["job"], told["failed"]["state"]) == ("second", "stopped")
    assert not list(tmp_path.rglob("*.lock"))
    write_all(of(place, overwrite=True), count=2)
    assert seen(place) == [0, 1]


def test_a_live_overwrite_that_is_stopped_publishes_what_it_has(tmp_path: Path) -> None:
    write_all(jsonl_sink(tmp_path))
    sink = opened(jsonl_sink(tmp_path, rows=30, overwrite=True))
    sink.write(rows(100, 3))
    sink.close("stopped")
    assert seen(tmp_path) == [100, 101, 102]


def test_a_live_overwrite_replaces_the_old_when_its_first_part_is_published(tmp_path: Path) -> None:
    write_all(jsonl_sink(tmp_path, rows=2), count=9)
    sink = opened(jsonl_sink(tmp_path, rows=3, overwrite=True))
    (tmp_path / "stranger.jsonl").write_text('{"n": -1}\n')
    sink.write(rows(100, 2))
    assert seen(tmp_path) == [*range(9), -1]
    sink.write(rows(102, 2))
    assert seen(tmp_path) == [100, 101, 102, -1]
    (tmp_path / "part-00000002.jsonl").write_text('{"n": -2}\n')
    with pytest.raises(SinkError, match="has appeared meanwhile; no manifest of ours names it"):
        sink.write(rows(104, 2))
    assert seen(tmp_path) == [100, 101, 102, -2, -1]


def test_a_file_whose_manifest_names_no_part_is_refused_before_the_run(tmp_path: Path) -> None:
    place = tmp_path / "rows.csv"
    sink = opened(csv_sink(place))
    sink.write(rows(0, 1))
    sink.abort("some failure")
    assert not place.exists()
    assert (tmp_path / ".rows.csv.slackwater.json").exists()
    place.write_text("mine\n1\n")
    with pytest.raises(SinkError, match=r"rows.csv is there already, and no manifest"):
        opened(csv_sink(place, overwrite=True))
    assert place.read_text() == "mine\n1\n"


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": True}])
def test_one_file_in_a_folder_of_parts_is_refused_if_readers_see_it(
    tmp_path: Path, options: dict[str, bool]
) -> None:
    write_all(jsonl_sink(tmp_path, rows=2), count=4)
    for output in (jsonl_sink(tmp_path / "y.jsonl", **options), csv_sink(tmp_path / "y.jsonl")):
        with pytest.raises(SinkError, match=r"in the folder of parts of job 'first-1'.*of both"):
            opened(output)
    write_all(csv_sink(tmp_path / "y.csv", **options))
    assert seen(tmp_path / "y.csv") == list(range(17))
    opened(jsonl_sink(tmp_path, rows=2, resume=True)).leave()


@pytest.mark.parametrize("mode", ["overwrite", "resume"])
def test_a_part_that_no_manifest_names_is_refused_before_the_run(tmp_path: Path, mode: str) -> None:
    write_all(jsonl_sink(tmp_path, rows=2), count=4)
    (tmp_path / "part-00000003.jsonl").write_text('{"n": -1}\n')
    with pytest.raises(SinkError, match=r"part-00000003.jsonl is there, which no manifest"):
        opened(jsonl_sink(tmp_path, rows=2, **{mode: True}))
    with pytest.raises(SinkError) as refused:
        opened(jsonl_sink(tmp_path, rows=2))
    assert "=True" not in str(refused.value)
    (tmp_path / "part-00000003.jsonl").rename(tmp_path / "mine.jsonl")
    with pytest.raises(SinkError, match=r"mine.jsonl is there, which no manifest"):
        opened(jsonl_sink(tmp_path, rows=2, **{mode: True}))
    (tmp_path / "mine.jsonl").rename(tmp_path / "mine.txt")
    opened(jsonl_sink(tmp_path, rows=2, **{mode: True})).leave()


def test_a_part_that_somebody_changed_is_not_ours_any_more(tmp_path: Path) -> None:
    write_all(jsonl_sink(tmp_path, rows=2), count=4)
    (tmp_path / "part-00000002.jsonl").write_text('{"n": 1000}\n')
    with pytest.raises(SinkError, match=r"part-00000002.jsonl has 12 bytes and had 18"):
        opened(jsonl_sink(tmp_path, overwrite=True))
    with pytest.raises(SinkError, match="put it back as it was"):
        opened(jsonl_sink(tmp_path, rows=2, resume=True))


@pytest.mark.parametrize("damage", ["{", "[]", '{"slackwater_manifest": 2}', '{"parts": 1}'])
def test_a_manifest_that_cannot_be_understood_is_an_error(tmp_path: Path, damage: str) -> None:
    (tmp_path / ".slackwater.json").write_text(damage)
    with pytest.raises(SinkError, match="is not valid"):
        opened(jsonl_sink(tmp_path, overwrite=True))


def test_a_manifest_cannot_have_us_remove_what_is_elsewhere(tmp_path: Path) -> None:
    write_all(jsonl_sink(tmp_path / "out"))
    told = manifest(tmp_path / "out")
    told["removing"] = ["../precious"]
    (tmp_path / "out" / ".slackwater.json").write_text(json.dumps(told))
    (tmp_path / "precious").touch()
    with pytest.raises(SinkError, match="not a name of a file in this folder"):
        opened(jsonl_sink(tmp_path / "out", overwrite=True))
    assert (tmp_path / "precious").exists()


# -- going on ----------------------------------------------------------------------------------


def test_resume_is_refused_by_the_name_of_what_differs(tmp_path: Path) -> None:
    write_all(jsonl_sink(tmp_path, rows=5))
    others = {
        "the steps of the flow up to this sink .* others": replace(MARKS, flow="f01"),
        r"source 'buses' read something else \(1 file of 9 bytes then, 2 files now\)": replace(
            MARKS, inputs={"buses": InputPrint("2 files", "d2")}
        ),
        r"source 'buses' read something else \(1 file of 9 bytes of another path, .*\)": replace(
            MARKS, inputs={"buses": InputPrint("1 file of 9 bytes", "d2")}
        ),
        "that sink had rows=5, and this one has rows=6": replace(MARKS, form="rows=6"),
        "that run had python 3, and this one has 4": replace(MARKS, release={"python": "4"}),
    }
    for said, marks in others.items():
        with pytest.raises(SinkError, match=f"17 rows of job 'first-1' .done.* {said}; choose"):
            opened(jsonl_sink(tmp_path, rows=5, resume=True), replace(RUN, fingerprint=marks))
    for said, output, name in (
        ("they are jsonl, and this sink writes csv", csv_sink, "out"),
        ("their sink was named 'out'", jsonl_sink, "outer"),
    ):
        with pytest.raises(SinkError, match=said):
            Driven(output(tmp_path, rows=5, resume=True), name=name, run=RUN)
    with pytest.raises(SinkError, match="the gate has a slack"):
        opened(
            jsonl_sink(tmp_path, rows=5, resume=True),
            replace(RUN, fingerprint=None, why_not="the gate has a slack"),
        )


def test_a_run_behind_one_that_was_done_writes_nothing_and_counts_everything(
    tmp_path: Path,
) -> None:
    write_all(jsonl_sink(tmp_path / "out", resume=True, rows=5))
    write_all(jsonl_sink(tmp_path / "one.jsonl", resume=True))
    before = shown(tmp_path / "out")
    assert write_all(jsonl_sink(tmp_path / "out", resume=True, rows=5)).skipped == 17
    assert write_all(jsonl_sink(tmp_path / "one.jsonl", resume=True)).skipped == 17
    assert shown(tmp_path / "out") == before
    assert seen(tmp_path / "one.jsonl") == list(range(17))


def test_a_rerun_that_gives_fewer_rows_than_are_committed_is_an_error(tmp_path: Path) -> None:
    write_all(jsonl_sink(tmp_path, rows=5))
    with pytest.raises(
        SinkError, match=r"the flow gave 9 rows.* committed 17; .*other results each time"
    ):
        write_all(jsonl_sink(tmp_path, rows=5, resume=True), count=9)


def test_a_kill_after_the_renaming_leaves_no_part_to_publish(tmp_path: Path) -> None:
    write_all(jsonl_sink(tmp_path / "out"), count=5)
    path = tmp_path / "out" / ".slackwater.json"
    left = {**json.loads(path.read_text()), "removing": ["part-00000007.jsonl"]}
    path.write_text(json.dumps(left))
    sink = write_all(jsonl_sink(tmp_path / "out", overwrite=True), count=5)
    assert [note for note in sink.progress.notes if "published" in note] == []


# -- a kill at every moment --------------------------------------------------------------------


@pytest.mark.parametrize("of", [parquet_sink, jsonl_sink, csv_sink])
def test_killed_at_some_operation_a_rerun_makes_the_same_files(
    tmp_path: Path, of: Any, killed: Callable[..., bool]
) -> None:
    write_all(of(tmp_path / "whole", rows=5))
    expected = shown(tmp_path / "whole")
    number, died = -9, True
    while died:
        number += 13  # more of them: `python -m benchmarks sink-kill`
        out = tmp_path / f"killed-{number}"
        out.mkdir()
        spec = of(out, rows=5, resume=True)
        died = killed(number, partial(write_all, spec), under=str(out))
        assert shown(out).items() <= expected.items()
        write_all(spec)
        assert shown(out) == expected, f"killed before operation {number}"
        assert not list(out.glob(".*.incomplete")) + list(out.glob(".slackwater.*.*"))
    assert number > 17


@pytest.mark.parametrize("mode", ["resume", "overwrite"])
@pytest.mark.parametrize("of", [parquet_sink, jsonl_sink, csv_sink])
def test_one_file_killed_at_any_operation_is_whole_after_a_resume(
    tmp_path: Path, of: Any, mode: str, killed: Callable[..., bool]
) -> None:
    number, died = 0, True
    while died:
        number += 1
        place = tmp_path / str(number) / f"one.{of.__name__.removesuffix('_sink')}"
        place.parent.mkdir()
        if mode == "overwrite":
            write_all(of(place), count=5)
        spec = of(place, **{mode: True})
        died = killed(number, partial(write_all, spec), under=str(place.parent))
        before = seen(place)
        assert before in ([], list(range(5)), list(range(17)))
        if before != list(range(5)):
            write_all(of(place, resume=True))
            assert seen(place) == list(range(17)), f"killed before operation {number}"
            assert write_all(of(place, resume=True)).skipped == 17
            assert not list(place.parent.glob(".*.incomplete"))
    assert number > 9


def test_one_file_of_a_stopped_run_is_not_continued(tmp_path: Path) -> None:
    place = tmp_path / "one.jsonl"
    sink = opened(jsonl_sink(place))
    sink.write(rows(0, 3))
    sink.close("stopped")
    with pytest.raises(SinkError, match="that job was stopped, and a file that is published"):
        opened(jsonl_sink(place, resume=True))


def test_a_run_after_a_kill_between_renaming_and_manifest_tells_of_no_parts(
    tmp_path: Path,
) -> None:
    write_all(jsonl_sink(tmp_path, rows=2), count=4)
    told = manifest(tmp_path)
    (tmp_path / ".slackwater.json").write_text(
        json.dumps({**told, "removing": ["part-00000003.jsonl"]})
    )
    sink = opened(jsonl_sink(tmp_path, overwrite=True))
    sink.write(rows(7, 1))
    sink.close()
    assert sink.progress.notes == []
    assert seen(tmp_path) == [7]


@pytest.mark.parametrize(
    ("name", "options"), [("out", {}), ("out", {"rows": 2}), ("one.jsonl", {})]
)
def test_killed_at_some_operation_an_overwrite_leaves_the_old_or_the_new(
    tmp_path: Path, name: str, options: dict[str, Any], killed: Callable[..., bool]
) -> None:
    new = list(range(100, 106))
    number, died = -9, True
    while died:
        number += 13
        folder = tmp_path / str(number)
        place = folder / name
        write_all(jsonl_sink(place, **options), count=5)
        (folder / "theirs.txt").write_text('{"n": -1}\n')
        spec = jsonl_sink(place, overwrite=True, **options)
        died = killed(number, partial(write_row_by_row, spec, new), under=str(folder))
        left = seen(place)
        # Behind the commit the old goes, then the new comes: never one beside the other.
        assert left == list(range(5)) or left == new[: len(left)] or set(left) <= set(range(5))
        after = opened(jsonl_sink(place, overwrite=True))
        after.write(rows(7, 1))
        assert seen(place) in (
            list(range(5)),
            *(new[:n] for n in range(0 if not options else 2, 7)),
        )
        after.close()
        assert seen(place) == [7]
        assert (folder / "theirs.txt").read_text() == '{"n": -1}\n'
    assert number > 4


def test_a_symlink_under_the_name_of_a_part_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").write_text("precious")
    os.symlink(tmp_path / "precious", tmp_path / "out" / "part-00000001.jsonl")
    with pytest.raises(SinkError, match="is there already"):
        opened(jsonl_sink(tmp_path / "out", overwrite=True))
    assert (tmp_path / "precious").read_text() == "precious"
