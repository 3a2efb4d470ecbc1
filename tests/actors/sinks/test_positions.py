"""Outputs of files that go on at a checkpoint: the same files, wherever the writer was killed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from slackwater.actors.sinks import outputs, parts
from slackwater.actors.sinks.outputs import collect_sink, csv_sink, jsonl_sink, parquet_sink
from slackwater.runtime.errors import SinkError
from slackwater.runtime.sinks.output import Output
from tests.support.sinks import (
    RUN,
    SECOND,
    Checkpoint,
    Clock,
    Driven,
    manifest,
    rows,
    seen,
    shown,
    write_all,
)

N = 23
OF: dict[str, Any] = {"parquet": parquet_sink, "jsonl": jsonl_sink, "csv": csv_sink}
MODES: dict[str, dict[str, Any]] = {
    "parts": {"rows": 5},
    "one part": {},
    "replaced parts": {"rows": 5, "overwrite": True},
    "replaced whole": {"overwrite": True},
    "one file": {},
    "file replaced": {"overwrite": True},
}


def output_of(kind: str, mode: str, folder: Path) -> tuple[Output, Path]:
    place = folder / (f"out.{kind}" if "file" in mode else "out")
    output: Output = OF[kind](place, **MODES[mode])
    return output, place


def carry_on(output: Output, notes: Path, *, batch: int, every: int) -> None:
    """Write all rows, from the last checkpoint on if there is one; take checkpoints on the way."""
    checkpoint = _read(notes)
    sink = Driven(output, run=RUN, checkpoint=checkpoint, keeps_positions=True)
    notes.write_bytes(pickle.dumps(checkpoint or Checkpoint()))
    first = (checkpoint or Checkpoint()).next_row
    for count, start in enumerate(range(first, N, batch), 1):
        sink.write(rows(start, min(batch, N - start)))
        if count % every == 0:
            aside = notes.with_suffix(".new")
            aside.write_bytes(pickle.dumps(sink.checkpoint()))
            aside.replace(notes)
    sink.close()


def _read(notes: Path) -> Checkpoint | None:
    if not notes.exists():
        return None
    known: Checkpoint = pickle.loads(notes.read_bytes())  # noqa: S301 - our own
    return known


def is_tidy(place: Path) -> bool:
    """Whether only published files and the manifest are there."""
    folder = place if place.is_dir() else place.parent
    hidden = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    return all(name.endswith(".json") for name in hidden)


@pytest.mark.parametrize(
    ("kind", "mode"),
    [*(("parquet", mode) for mode in MODES), *zip(cycle(("jsonl", "csv")), MODES)],
)
def test_killed_at_some_operation_it_goes_on_to_the_same_files(
    tmp_path: Path, kind: str, mode: str, killed: Callable[..., bool]
) -> None:
    whole, place = output_of(kind, mode, tmp_path / "whole")
    write_all(whole, count=N)
    expected = shown(place.parent) if place.is_file() else shown(place)
    assert seen(place) == list(range(N))
    number, died, deaths = 0, True, 0
    while died:
        number += 7
        folder = tmp_path / str(number)
        output, place = output_of(kind, mode, folder / "there")
        if "replaced" in mode:
            write_all(output, count=7, run=replace(RUN, job="before"))
        work = partial(carry_on, output, folder / "notes", batch=3, every=2)
        folder.mkdir(exist_ok=True)
        died = killed(number, work, under=str(folder / "there"))
        deaths += died
        killed(number // 2 + 2, work, under=str(folder / "there"))  # once more, on its way back
        carry_on(output, folder / "notes", batch=4, every=3)
        there = shown(place.parent) if place.is_file() else shown(place)
        assert there == expected, f"killed before operation {number}"
        assert is_tidy(place), f"killed before operation {number}"
    assert deaths > 1


@pytest.mark.parametrize("kind", OF)
def test_parts_that_were_published_since_stay_and_their_rows_are_skipped(
    tmp_path: Path, kind: str
) -> None:
    output = OF[kind](tmp_path / "out", rows=5)
    sink = Driven(output, run=RUN, keeps_positions=True)
    sink.write(rows(0, 3))
    checkpoint = sink.checkpoint()
    sink.write(rows(3, 9))
    first = shown(tmp_path / "out")
    assert len(first) == 2
    sink.abort("a worker died")
    sink = Driven(output, run=RUN, checkpoint=checkpoint)
    sink.write(rows(3, 20))
    assert sink.skipped == 7
    assert (sink.progress.published, sink.progress.parts, sink.progress.waiting) == (20, 4, 3)
    sink.close()
    assert seen(tmp_path / "out") == list(range(23))
    assert [len(data) for data in shown(tmp_path / "out").values()][:2] == [
        len(data) for data in first.values()
    ]
    assert [part[1] for part in manifest(tmp_path / "out")["parts"]] == [5, 5, 5, 5, 3]


@pytest.mark.parametrize("kind", OF)
def test_it_goes_on_though_the_writer_from_before_still_lives(tmp_path: Path, kind: str) -> None:
    output = OF[kind](tmp_path / "out", rows=5)
    before = Driven(output, run=RUN, keeps_positions=True)
    before.write(rows(0, 7))
    checkpoint = before.checkpoint()
    sink = Driven(output, run=RUN, checkpoint=checkpoint)
    with pytest.raises(SinkError, match=r"was taken from us|changed by another program"):
        before.write(rows(7, 20))
    with suppress(SinkError):  # the other has written into its part: it is cut once more
        sink.write(rows(7, 2))
    sink = Driven(output, run=RUN, checkpoint=checkpoint)
    sink.write(rows(7, 16))
    sink.close()
    assert seen(tmp_path / "out") == list(range(23))


def test_a_job_that_begins_again_keeps_what_it_had_published(tmp_path: Path) -> None:
    output = jsonl_sink(tmp_path, rows=5)
    sink = Driven(output, run=RUN, keeps_positions=True)
    sink.write(rows(0, 13))
    sink.abort("a worker died before the first checkpoint")
    sink = Driven(output, run=RUN, checkpoint=Checkpoint())
    sink.write(rows(0, 23))
    sink.close()
    assert sink.skipped == 10
    assert seen(tmp_path) == list(range(23))
    with pytest.raises(SinkError, match="two runs must not mix"):  # a new job does not
        Driven(output, run=RUN)


def test_an_output_that_is_done_stays_as_it_is_when_its_rows_come_again(tmp_path: Path) -> None:
    output = parquet_sink(tmp_path, rows=5)
    sink = Driven(output, run=RUN, keeps_positions=True)
    sink.write(rows(0, 8))
    checkpoint = sink.checkpoint()
    sink.write(rows(8, 4))
    sink.close()
    before = shown(tmp_path)
    again = Driven(output, run=RUN, checkpoint=checkpoint)
    again.write(rows(8, 4))
    again.close()
    assert (again.skipped, shown(tmp_path)) == (4, before)
    assert manifest(tmp_path)["run"]["state"] == "done"


def test_an_output_that_was_over_at_the_checkpoint_is_opened_without_its_lock(
    tmp_path: Path,
) -> None:
    output = csv_sink(tmp_path, rows=5)
    sink = Driven(output, run=RUN, keeps_positions=True)
    sink.write(rows(0, 8))
    sink.close()
    checkpoint, before = sink.checkpoint(), shown(tmp_path)
    again = Driven(output, run=RUN, checkpoint=checkpoint)
    again.begin()
    assert (is_tidy(tmp_path), shown(tmp_path)) == (True, before)
    assert again.checkpoint().at == checkpoint.at
    again.close()
    assert manifest(tmp_path)["run"]["state"] == "done"


def test_a_part_that_waits_for_its_interval_is_published_after_a_failure(tmp_path: Path) -> None:
    clock = Clock()
    clock.now_ns = 500 * SECOND
    output = csv_sink(tmp_path, every="10s")
    sink = Driven(output, run=RUN, keeps_positions=True, clock_ns=clock)
    sink.write(rows(0, 3))
    checkpoint = sink.checkpoint()
    sink.abort("a host died")
    clock.now_ns = 100 * SECOND  # of another host
    sink = Driven(output, run=RUN, checkpoint=checkpoint, clock_ns=clock)
    sink.begin()
    assert sink.due_ns is not None
    assert sink.due_ns <= clock.now_ns
    sink.publish_due()
    assert seen(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("kind", OF)
def test_it_goes_on_from_an_older_checkpoint_after_a_newer_one(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "PART_ROWS", 5)  # parts that are whole, and hidden to the end
    write_all(OF[kind](tmp_path / "whole"), count=N)
    write_all(OF[kind](tmp_path / "out"), count=4, run=replace(RUN, job="before"))
    output = OF[kind](tmp_path / "out", overwrite=True)
    sink = Driven(output, run=RUN, keeps_positions=True)
    sink.write(rows(0, 8))
    older = sink.checkpoint()
    sink.write(rows(8, 8))
    newer = sink.checkpoint()
    for checkpoint in (newer, older, older):
        sink.abort("a worker died")
        assert seen(tmp_path / "out") == list(range(4))
        sink = Driven(output, run=RUN, checkpoint=checkpoint)
        sink.write(rows(checkpoint.next_row, 17 - checkpoint.next_row))
    sink.write(rows(17, N - 17))
    sink.close()
    assert shown(tmp_path / "out") == shown(tmp_path / "whole")
    assert is_tidy(tmp_path / "out")


def test_categories_and_row_groups_are_the_same_bytes_from_a_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "GROUP_ROWS", 8)
    words = pa.array([["a", None, "", "b"][n % 4] for n in range(30)]).dictionary_encode()
    schema = pa.schema([("x", words.type)])

    def write(sink: Driven, first: int, last: int, batch: int) -> None:
        for start in range(first, last, batch):
            own = words.slice(start, min(batch, last - start)).cast(pa.string())
            sink.write(pa.record_batch([own.dictionary_encode()], schema=schema))

    whole = Driven(parquet_sink(tmp_path / "whole"), schema, run=RUN)
    write(whole, 0, 30, 7)
    whole.close()
    output = parquet_sink(tmp_path / "out")
    sink = Driven(output, schema, run=RUN, keeps_positions=True)
    write(sink, 0, 19, 3)
    checkpoint = sink.checkpoint()
    write(sink, 19, 22, 3)
    sink.abort("a worker died")
    sink = Driven(output, schema, run=RUN, checkpoint=checkpoint)
    write(sink, 19, 30, 5)
    sink.close()
    assert shown(tmp_path / "out") == shown(tmp_path / "whole")


def _remove(folder: Path) -> None:
    for path in folder.glob(".part*"):
        path.unlink()


def _cut(folder: Path) -> None:
    for path in folder.glob(".part*"):
        path.write_bytes(path.read_bytes()[:5])


def _change_published(folder: Path) -> None:
    (folder / "part-00000001.jsonl").write_text("{}\n")


def _other_job(folder: Path) -> None:
    write_all(jsonl_sink(folder / "new"), count=2)
    (folder / ".slackwater.json").write_bytes((folder / "new" / ".slackwater.json").read_bytes())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_remove, "its part in the making, part-00000002.jsonl, is gone"),
        (_cut, r"its part in the making, part-00000002.jsonl, has 5 bytes and had 18"),
        (_change_published, "its part part-00000001.jsonl has 3 bytes and had 45"),
        (_other_job, "it has 2 rows of job 'first-1', and the checkpoint is of another run"),
        (lambda folder: (folder / ".slackwater.json").unlink(), "its manifest is gone"),
        (lambda folder: (folder / "x.jsonl").touch(), "x.jsonl is there, which no manifest"),
    ],
)
def test_what_another_program_changed_is_refused_by_name_and_nothing_is_touched(
    tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    output = jsonl_sink(tmp_path, rows=5)
    sink = Driven(output, run=RUN, keeps_positions=True)
    sink.write(rows(0, 7))
    checkpoint = sink.checkpoint()
    sink.abort("a worker died")
    change(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(
        SinkError, match=f"cannot go on at the checkpoint: {said}.*; .* put it back"
    ):
        Driven(output, run=RUN, checkpoint=checkpoint)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}


def test_a_position_of_another_kind_of_sink_is_refused(tmp_path: Path) -> None:
    collected = Driven(collect_sink(), run=RUN)
    collected.write(rows(0, 7))
    with pytest.raises(SinkError, match="a position that is not one of files"):
        Driven(jsonl_sink(tmp_path), run=RUN, checkpoint=Checkpoint(at=collected.checkpoint().at))


def test_collected_rows_are_a_part_of_the_checkpoint() -> None:
    sink = Driven(collect_sink(), run=RUN)
    sink.write(rows(0, 7))
    checkpoint = sink.checkpoint()
    sink.write(rows(7, 7))
    again = Driven(collect_sink(), run=RUN, checkpoint=checkpoint)
    again.write(rows(7, 4))
    again.close()
    assert again.sink.table()["n"].to_pylist() == list(range(11))
    assert again.skipped == 0
    with pytest.raises(SinkError, match="it has 0 rows, and had been given 7 at the checkpoint"):
        Driven(collect_sink(), run=RUN, checkpoint=checkpoint._replace(at=b"")).begin()


@pytest.mark.parametrize("kind", OF)
def test_an_output_that_resumed_an_earlier_run_goes_on_after_its_parts(
    tmp_path: Path, kind: str
) -> None:
    write_all(OF[kind](tmp_path / "whole", rows=5), count=N)
    earlier = Driven(OF[kind](tmp_path / "out", rows=5), run=replace(RUN, job="before"))
    earlier.write(rows(0, 12))
    earlier.abort("its host died")
    output = OF[kind](tmp_path / "out", rows=5, resume=True)
    sink = Driven(output, run=RUN, keeps_positions=True)
    not_begun = sink.checkpoint()
    sink.write(rows(0, 13))
    begun = sink.checkpoint()
    sink.write(rows(13, 4))
    for checkpoint in (begun, not_begun, begun):
        sink.abort("a worker died")
        sink = Driven(output, run=RUN, checkpoint=checkpoint)
        sink.write(rows(checkpoint.next_row, 19 - checkpoint.next_row))
    assert sink.progress.published == 5
    sink.write(rows(19, 4))
    sink.close()
    assert shown(tmp_path / "out") == shown(tmp_path / "whole")


@pytest.mark.parametrize("kind", OF)
def test_parts_that_end_by_time_have_each_row_once(tmp_path: Path, kind: str) -> None:
    for dies_at in range(2, 20):
        clock, place, has_died = Clock(), tmp_path / str(dies_at), False
        output = OF[kind](place, every="10s", rows=9)
        sink = Driven(output, run=RUN, keeps_positions=True, clock_ns=clock)
        known = Checkpoint()
        first = 0
        while first < N:
            clock.now_ns += 3 * SECOND
            sink.write(rows(first, 1))
            sink.publish_due()
            first += 1
            if first % 4 == 0:
                known = sink.checkpoint()
            if first == dies_at and not has_died:
                sink.abort("a worker died")
                sink = Driven(output, run=RUN, checkpoint=known, clock_ns=clock)
                first = known.next_row
                has_died = True
        sink.close()
        assert seen(place) == list(range(N))
        assert is_tidy(place)
