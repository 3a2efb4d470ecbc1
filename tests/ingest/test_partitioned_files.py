"""Files as partitions: each in its own order, few open at once, named where they are damaged."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.ingest.positions import position_of
from slackwater.runtime.errors import IngestError, OrderError, SchemaError, SettingError
from slackwater.runtime.model.state import restore, save
from tests.support.chance import Seeded
from tests.support.sources import machine, take

Rows = list[tuple[int, ...]]
KINDS = ("parquet", "csv", "jsonl")


def write(folder: Path, name: str, rows: Rows, *, kind: str, group: int = 1_000_000) -> Path:
    """Write rows of (t, k, x) as a file."""
    path = folder / f"{name}.{kind}"
    table = pa.table({n: [row[i] for row in rows] for i, n in enumerate("tkx")})
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=group)
    elif kind == "csv":
        lines = [",".join(map(str, row)) for row in rows]
        path.write_text("\n".join(["t,k,x", *lines]) + "\n")
    else:
        path.write_text("".join(f'{{"t": {t}, "k": {k}, "x": {x}}}\n' for t, k, x in rows))
    return path


def read(
    source: Any, names: str = "tkx", chance: random.Random | None = None, fresh: Any = None
) -> Rows:
    """Return all rows; restore the source on the way if `fresh` makes another."""
    rows: Rows = []
    while not source.is_over:
        message = take(source, 0)
        if message is not None and message.batch is not None:
            columns = message.batch.columns
            rows += zip(*(columns[name].tolist() for name in names), strict=True)
        if chance is not None and chance.random() < 0.2:
            again = fresh()
            restore(again, save(source))
            source.close()
            source = again
    return rows


def split(rows: Rows, parts: int) -> list[Rows]:
    return [rows[n::parts] for n in range(parts)]


ROWS: Rows = [(n, n % 7, n * 3) for n in range(300)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("open_files", [1, 2, None])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_files_that_overlap_have_the_rows_of_one(
    tmp_path: Path, parts: int, open_files: int | None, kind: str
) -> None:
    for n, rows in enumerate(split(ROWS, parts)):
        write(tmp_path, f"p{n}", rows, kind=kind, group=11)

    def made() -> Any:
        files: Any = getattr(sw, kind)(
            tmp_path, partitions="files", open_files=open_files, batch_rows=7
        )
        return machine(files)

    assert Counter(read(made())) == Counter(ROWS)
    for seed in range(3):
        assert Counter(read(made(), chance=Seeded(seed), fresh=made)) == Counter(ROWS)


def test_row_groups_are_partitions_of_their_own_order(tmp_path: Path) -> None:
    runs = [row for rows in split(ROWS, 4) for row in rows]  # 4 sorted runs, a row group each
    write(tmp_path, "runs", runs, kind="parquet", group=75)
    with pytest.raises(OrderError):
        read(machine(sw.parquet(tmp_path)))
    files = sw.parquet(tmp_path, partitions="row groups", batch_rows=10)
    assert [name for name, *_ in files.partitions()] == [f"runs.parquet#{n}" for n in range(4)]
    assert Counter(read(machine(files))) == Counter(ROWS)


def open_files_of(folder: Path) -> int:
    links = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return sum(os.path.realpath(link).startswith(str(folder)) for link in links)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files by /proc")
@pytest.mark.parametrize(("apart", "most"), [(True, 1), (False, 3)])
def test_few_files_are_open_at_once(tmp_path: Path, apart: bool, most: int) -> None:
    parts = [ROWS[n * 30 : n * 30 + 30] for n in range(10)] if apart else split(ROWS, 10)
    for n, rows in enumerate(parts):
        write(tmp_path, f"p{n}", rows, kind="parquet")
    source = machine(sw.parquet(tmp_path, partitions="files", open_files=3, batch_rows=5))
    seen, rows = set(), 0
    while not source.is_over:
        message = take(source, 0)
        rows += 0 if message is None else message.rows
        seen.add(open_files_of(tmp_path))
    assert (rows, max(seen)) == (300, most)


def test_files_that_follow_each_other_leave_in_order(tmp_path: Path) -> None:
    for n in range(10):  # so that names say nothing of times
        write(tmp_path, f"p{9 - n}", ROWS[n * 30 : n * 30 + 30], kind="csv")
    assert read(machine(sw.csv(tmp_path, partitions="files"))) == ROWS


def test_an_event_time_that_is_computed_says_when_a_file_begins(tmp_path: Path) -> None:
    for n in range(3):
        write(tmp_path, f"p{2 - n}", ROWS[n * 100 : n * 100 + 100], kind="parquet")
    files = sw.parquet(tmp_path, partitions="files")
    source = machine(files, event_time=sw.col("t") * 1_000_000_000)
    assert read(source) == ROWS


@given(
    pairs=st.lists(
        st.tuples(st.integers(0, 100), st.integers(0, 3)), min_size=1, max_size=60, unique=True
    ),
    parts=st.sampled_from([1, 2, 5]),
    open_files=st.integers(1, 3),
    at=st.randoms(use_true_random=False),
)
def test_a_keyed_step_writes_the_same_rows_in_one_order(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: list[tuple[int, int]],
    parts: int,
    open_files: int,
    at: random.Random,
) -> None:
    rows = [(t, k, t * 7 + k) for t, k in sorted(pairs)]
    folder = tmp_path_factory.mktemp("files")
    pieces: list[Rows] = [[] for _ in range(parts)]
    for row in rows:
        at.choice(pieces).append(row)
    for n, piece in enumerate(pieces):
        write(folder, f"p{n}", piece, kind="parquet", group=5)
    expected = sums_of(sw.table({n: [row[i] for row in rows] for i, n in enumerate("tkx")}))
    for by in ("files", "row groups"):
        made = sw.parquet(
            folder,
            partitions=by,
            open_files=open_files,
            batch_rows=3,
            types=dict.fromkeys("tkx", "int64"),
        )
        assert sums_of(made).equals(expected)


def sums_of(rows: Any) -> pa.Table:
    flow = sw.Dataflow("sums")
    keyed = flow.source("rows", rows, event_time="t", time_unit="s").key_by("k")
    sums = keyed.aggregate(window=sw.tumbling("20s"), n=sw.count(), x=sw.sum("x"), replicas=1)
    sums.sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        out: pa.Table = job.result("out")
    return out


def test_first_rows_that_are_bad_or_missing_lose_no_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,k,x\n")
    (tmp_path / "b.csv").write_text("\nt,k,x\n\n7,1,2,9\n8,1,2\n")
    (tmp_path / "c.csv").write_text("t,k,x\n3,1,2\n9,1,2\n")
    (tmp_path / "d.csv").write_text("t,k,x\n,1,2\n4,1,2\n")
    files = sw.csv(tmp_path, partitions="files", on_bad="skip", types=dict.fromkeys("tkx", "int64"))
    source = machine(files, on_bad="skip")
    assert sorted(t for t, *_ in read(source)) == [3, 4, 8, 9]
    assert (source.unreadable, source.bad_times) == (1, 1)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_look_at_a_file_of_text_parses_its_first_record_alone(tmp_path: Path, kind: str) -> None:
    write(tmp_path, "a", ROWS, kind=kind)  # which shows the types
    path = write(tmp_path, "b", ROWS, kind=kind)
    path.write_text(path.read_text() + "no record\n")
    files = getattr(sw, kind)(tmp_path, partitions="files")
    assert files.first_row(f"b.{kind}", ["t"]).to_pylist() == [{"t": 0}]
    with pytest.raises(IngestError, match=r"partition 'b\..*' after 0 rows: .*line 30[12]"):
        read(machine(files))


# -- bad input --------------------------------------------------------------------------


def test_a_damaged_file_is_named_with_the_row_before_it(tmp_path: Path) -> None:
    for n in range(3):
        write(tmp_path, f"p{n}", ROWS[n * 100 : n * 100 + 100], kind="csv")
    text = (tmp_path / "p1.csv").read_text().replace("150,3,450", "150,3,many")
    (tmp_path / "p1.csv").write_text(text)
    files = sw.csv(tmp_path, partitions="files", types={"x": "int64"})
    with pytest.raises(
        IngestError, match=r"'s', partition 'p1\.csv' after 0 rows: csv .*p1\.csv .*line 52.*many"
    ):
        read(machine(files))


@pytest.mark.parametrize(
    ("last", "fault"),
    [(None, r"null in 1 of the 2 rows from row 0 on, first in row 1"), (2**63 - 1, "")],
)
def test_a_bad_time_in_a_row_group_is_named_with_group_and_row(
    tmp_path: Path, last: int | None, fault: str
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": [1, 2, 3, 4, 5, last]}), path, row_group_size=2)
    source = machine(sw.parquet(tmp_path, partitions="row groups"))
    with pytest.raises(
        SchemaError,
        match=rf"{fault}.* \(in partition 'a\.parquet#2', .*/a\.parquet, from its row 4 on\)$",
    ):
        read(source, "t")


def test_a_parquet_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    for n in range(3):
        write(tmp_path, f"p{n}", ROWS[n * 100 : n * 100 + 100], kind="parquet")
    source = machine(sw.parquet(tmp_path, partitions="files").planned())
    path = tmp_path / "p1.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(IngestError, match=r"partition 'p1\.parquet' after 0 rows: parquet .*p1"):
        read(source)


def test_a_file_that_vanishes_is_named(tmp_path: Path) -> None:
    for n in range(3):
        write(tmp_path, f"p{n}", ROWS[n * 100 : n * 100 + 100], kind="jsonl")
    source = machine(sw.jsonl(tmp_path, partitions="files").planned())
    assert take(source, 0).rows == 100
    (tmp_path / "p2.jsonl").unlink()
    with pytest.raises(
        IngestError, match=r"partition 'p2\.jsonl' after 0 rows: jsonl .*No such file"
    ):
        read(source)


def test_a_file_that_shrank_since_the_plan_is_named(tmp_path: Path) -> None:
    write(tmp_path, "a", ROWS, kind="parquet")
    source = machine(sw.parquet(tmp_path, partitions="files").planned())
    write(tmp_path, "a", ROWS[:250], kind="parquet")
    with pytest.raises(IngestError, match=r"after 250 rows: .*has 50 rows less than when it was"):
        read(source)


@pytest.mark.parametrize("batch_rows", [7, 1_000])
@pytest.mark.parametrize("by", ["files", "row groups"])
@pytest.mark.parametrize("rows", [0, 200])
def test_a_file_that_grew_since_the_plan_is_named(
    tmp_path: Path, rows: int, by: str, batch_rows: int
) -> None:
    kinds = dict.fromkeys("tkx", "int64")
    pq.write_table(pa.table({n: pa.array([], "int64") for n in "tkx"}), tmp_path / "a.parquet")
    if rows:
        write(tmp_path, "a", ROWS[:rows], kind="parquet", group=100)
    files = sw.parquet(tmp_path, partitions=by, batch_rows=batch_rows, types=kinds)
    source = machine(files.planned())
    write(tmp_path, "a", ROWS, kind="parquet", group=100)
    with pytest.raises(IngestError, match=r"a\.parquet: has more rows than when it was listed"):
        read(source)


def test_a_file_that_appears_is_of_the_next_run(tmp_path: Path) -> None:
    write(tmp_path, "b", ROWS, kind="csv")
    planned = sw.csv(tmp_path, partitions="files").planned()
    write(tmp_path, "a", ROWS, kind="csv")
    assert len(read(machine(planned))) == len(ROWS)


def first_position(files: Any, name: str) -> bytes:
    at: bytes = files.open(name, None).poll().at
    return at


def test_a_position_of_another_file_or_version_is_refused(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path, name, ROWS[:10], kind="csv")
    files = sw.csv(tmp_path, partitions="files")
    at = first_position(files, "a.csv")
    assert files.open("a.csv", at).poll().rows.num_rows == 10
    with pytest.raises(IngestError, match=r"it is in .*a\.csv, file 1, and it is .*b\.csv now"):
        files.open("b.csv", at)
    other = sw.csv(tmp_path, partitions="files", columns=["t", "k"])
    with pytest.raises(IngestError, match="it is of another csv input"):
        other.open("a.csv", at)
    write(tmp_path, "a", ROWS[:9] + ROWS[20:21], kind="csv")
    with pytest.raises(IngestError, match=r"shrunk|has changed since it was read"):
        files.open("a.csv", at)
    with pytest.raises(IngestError, match=r"no partition 'c\.csv'"):
        files.open("c.csv", None)


def test_a_position_of_another_row_group_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a", ROWS, kind="parquet", group=100)
    files = sw.parquet(tmp_path, partitions="row groups")
    at = first_position(files, "a.parquet#1")
    assert files.open("a.parquet#1", at).poll().rows.num_rows == 100
    with pytest.raises(IngestError, match=r"row 100 is not of partition 'a\.parquet#2'"):
        files.open("a.parquet#2", at)
    with pytest.raises(IngestError, match="is of an input of kind 'table'"):
        files.open("a.parquet#1", position_of("table", "0", [1]))


def test_a_pattern_that_finds_a_file_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    write(tmp_path / "x" / "y", "a", ROWS, kind="csv")
    files = sw.csv(tmp_path / "**" / "**" / "*.csv", partitions="files")
    if len(files.files.files()) == 1:
        pytest.skip("this Python's glob finds it once")
    with pytest.raises(SchemaError, match=r"has two partitions named 'x/y/a\.csv'"):
        read(machine(files))


def test_open_files_is_of_partitions() -> None:
    with pytest.raises(SettingError, match=r"open_files=3 is of partitions, .*write partitions"):
        sw.parquet("a", open_files=3)
    with pytest.raises(SettingError, match="open_files=0 must be 1 or more"):
        sw.parquet("a", partitions="files", open_files=0)


def test_explain_says_what_is_a_partition_and_how_many_are_open(tmp_path: Path) -> None:
    write(tmp_path, "a", ROWS, kind="csv")
    flow = sw.Dataflow("f")
    flow.source("s", sw.csv(tmp_path, partitions="files"), event_time="t", retry=3)
    text = flow.explain()
    assert "(1 file), each file a partition" in text
    assert "in up to as many stages as slots, at most 64 open at once in each" in text
    assert "opened again up to 3 times after it raised" in text
