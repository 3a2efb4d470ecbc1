"""Diverted rows have times that no cut changes: their own, or those of the rows before them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.sources.spec import END_OF_INPUT, BadRows
from tests.support.chance import Seeded

col = sw.col
MS = 10**6
ROWS = 60


def texts(chance: Seeded) -> list[str | None]:
    """Times in ms, a fifth of them missing or no numbers; they run back by up to 5 ms."""
    return [
        chance.choice([None, "soon"]) if chance.random() < 0.2 else str(n + chance.randrange(5))
        for n in range(10, 10 + ROWS)
    ]


def known_ms(times: list[str | None]) -> list[int]:
    """Return the newest time before each row without one; 0: there is none."""
    newest, found = 0, []
    for text in times:
        if text is None or not text.isdecimal():
            found.append(newest)
        else:
            newest = max(newest, int(text))
    return found


class Cut:
    """An input of rows and bad records, cut at random."""

    is_history: ClassVar[bool] = True
    reads_inline: ClassVar[bool] = True
    on_bad: ClassVar[str] = "divert"

    def __init__(self, times: list[str | None], seed: int) -> None:
        self.times, self.seed = times, seed

    def describe(self) -> str:
        return "cut"

    def schema(self) -> pa.Schema:
        return pa.schema({"ts": pa.string(), "n": pa.int64()})

    def open(self) -> Any:
        return Reader(self.parts(Seeded(self.seed)))

    def parts(self, chance: Seeded) -> list[pa.RecordBatch | BadRows]:
        """Return all parts; a tenth of the rows cannot be read, whatever the cut."""
        parts: list[pa.RecordBatch | BadRows] = []
        rows: list[dict[str, Any]] = []

        def end() -> None:
            if rows:
                parts.append(pa.RecordBatch.from_pylist(rows, schema=self.schema()))
                rows.clear()

        for n, text in enumerate(self.times):
            if n % 10 == 7:
                end()
                bad = {"file": "f", "line": n, "reason": "unreadable", "text": str(n)}
                parts.append(BadRows(pa.RecordBatch.from_pylist([bad])))
                continue
            rows.append({"ts": text, "n": n})
            if chance.random() < 0.3:
                end()
        end()
        return parts


class Reader:
    def __init__(self, parts: list[pa.RecordBatch | BadRows]) -> None:
        self._parts = iter(parts)

    def poll(self) -> Any:
        return next(self._parts, END_OF_INPUT)

    def close(self) -> None:
        """Nothing is open."""


def odd(row: dict[str, Any]) -> dict[str, Any]:
    if row["n"] % 3 == 0:
        raise ValueError("three")
    return {"n": row["n"]}


class Five:
    def on_rows(self, _key: Any, rows: Any) -> Any:
        if any(row["n"] % 5 == 0 for row in rows):
            raise ValueError("five")
        return [{"n": row["n"]} for row in rows]


def taken(stream: sw.Stream, name: str) -> None:
    """Take what a stream diverts: as rows with their times, and counted by windows."""
    bad = stream.diverted(name=f"{name}-bad")
    bad.select("row", at=sw.event_time()).sink(name, sw.collect_sink())
    counts = bad.aggregate(n=sw.count(), window=sw.tumbling("7ms"), name=f"{name}-counts")
    counts.sink(f"{name}-windows", sw.collect_sink())


def ran(given: Any, limits: sw.Limits, *, speed: float | None, seed: int) -> dict[str, Any]:
    flow = sw.Dataflow("cuts")
    at = col("ts").try_cast("int64")
    rows = flow.source(
        *("s", given),
        event_time=at,
        time_unit="ms",
        on_bad="divert",
        out_of_order="sort",
        disorder="5ms",
        speed=speed,
    )
    taken(rows, "source")
    mapped = rows.map_rows(odd, {"n": "int64"}, on_error="divert", name="mapped")
    taken(mapped, "map")
    keyed = rows.process(Five, {"n": "int64"}, by="n", within="1s", on_error="divert", name="p")
    taken(keyed, "process")
    for stream in (mapped, keyed):
        stream.sink(f"out-{stream.name}", sw.collect_sink())
    sinks = [step.name for step in flow.steps.values() if step.traits.kind == "sink"]
    with sw.Simulation(1, seed=seed) as nodes:
        job = nodes.submit(flow, limits=limits)
        assert job.wait().ledger.is_balanced
        return {name: job.result(name).to_pylist() for name in sinks}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("speed", [None, 1.0])
def test_no_cut_changes_the_time_of_a_diverted_row(seed: int, speed: float | None) -> None:
    chance = Seeded(seed)
    times = texts(chance)
    first: dict[str, Any] | None = None
    for cut in range(4):
        most = chance.choice([1, 3, 7, 100])
        limits = sw.Limits(max_slice_rows=most, min_slice_rows=min(most, 2))
        found = ran(Cut(times, chance.randrange(99)), limits, speed=speed, seed=cut)
        first = first or found
        assert found == first, f"seed {seed}, cut {cut}, slices of {most} rows"
    assert first is not None
    read = [None if n % 10 == 7 else text for n, text in enumerate(times)]
    assert [row["at"] for row in first["source"]] == [at * MS for at in known_ms(read)]
    assert sum(row["n"] for row in first["source-windows"]) == len(first["source"])
    of_n = {n: int(text) for n, text in enumerate(read) if text and text.isdecimal()}
    for sink, divisor in (("map", 3), ("process", 5)):
        rows = [(json.loads(row["row"])["n"], row["at"]) for row in first[sink]]
        assert sorted(rows) == sorted((n, of_n[n] * MS) for n in of_n if n % divisor == 0)
        assert sum(row["n"] for row in first[f"{sink}-windows"]) == len(rows)


@pytest.mark.parametrize("batch_rows", [1, 3, 100])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_record_that_cannot_be_read_has_the_time_of_the_one_before(
    kind: str, batch_rows: int, tmp_path: Path
) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "csv":
        path.write_text("t,n\n1,1\n2\n3,3\n,4\n4\n5\n6,6\n")
    else:
        lines = ['{"t":1,"n":1}', "x", '{"t":3,"n":3}', '{"n":4}', "y", "z", '{"t":6,"n":6}']
        path.write_text("\n".join(lines) + "\n")
    read = getattr(sw, kind)(path, on_bad="divert", batch_rows=batch_rows)
    flow = sw.Dataflow("records")
    rows = flow.source("s", read, event_time="t", time_unit="s", on_bad="divert")
    rows.sink("out", sw.collect_sink())
    rows.diverted().select("line", at=sw.event_time()).sink("bad", sw.collect_sink())
    with sw.Simulation(1) as nodes:
        job = nodes.submit(flow)
        job.wait()
        found = [(row["line"], row["at"] // 10**9) for row in job.result("bad").to_pylist()]
        assert job.result("out")["n"].to_pylist() == [1, 3, 6]
    lines_of = [3, None, 6, 7] if kind == "csv" else [2, None, 5, 6]
    assert [line for line, _ in found] == lines_of
    assert [at for _, at in found] == [1, 3, 3, 3]


@pytest.mark.parametrize("cuts", [(1, 100), (100, 1), (7, 3)])
def test_a_run_resumes_the_stream_of_diverted_rows(cuts: tuple[int, int], tmp_path: Path) -> None:
    """The first run fails; the second, cut otherwise, goes on after the rows that it committed."""
    times = texts(Seeded(5))
    out, fails = tmp_path / "bad", tmp_path / "fails"

    def fragile(row: dict[str, Any]) -> dict[str, Any]:
        if row["n"] > 40 and fails.exists():
            raise RuntimeError("killed")
        return {"n": row["n"]}

    def run(batch_rows: int) -> list[Any]:
        flow = sw.Dataflow("resumed")
        table = pa.table({"ts": pa.array(times, pa.string()), "n": range(ROWS)})
        rows = flow.source(
            *("s", sw.table(table, batch_rows=batch_rows)),
            event_time=col("ts").try_cast("int64"),
            time_unit="ms",
            on_bad="divert",
            out_of_order="late",
            disorder="5ms",
        )
        rows.map_rows(fragile, {"n": "int64"}).sink("good", sw.collect_sink())
        bad = rows.diverted().select("row", at=sw.event_time())
        bad.sink("bad", sw.jsonl_sink(out, rows=2, resume=True))
        with sw.Simulation(1) as nodes:
            job = nodes.submit(flow, limits=sw.Limits(max_slice_rows=5, min_slice_rows=1))
            if fails.exists():
                with pytest.raises(sw.SlackwaterError, match="killed"):
                    job.wait()
            else:
                job.wait()
        parts = sorted(out.glob("part-*"))
        return [json.loads(line) for part in parts for line in part.read_text().splitlines()]

    fails.touch()
    first = run(cuts[0])
    fails.unlink()
    whole = run(cuts[1])
    assert first, "some rows were committed"
    assert whole[: len(first)] == first
    expected = [at * MS for at in known_ms(times)]
    assert [row["at"] for row in whole] == expected
    assert len(whole) == len({row["row"] for row in whole})


@pytest.mark.parametrize("arrival", [None, "heard"])
@pytest.mark.parametrize("batch_rows", [1, 3, 100])
def test_a_clock_that_runs_ahead_makes_no_diverted_row_newer(
    arrival: str | None, batch_rows: int
) -> None:
    times = [10, 11, None, 9_000_000, None, 12, None, 13, 14]
    heard = [10, 11, 11, 12, 12, 12, 13, 13, 14]
    table = pa.table({"t": pa.array(times, pa.int64()), "heard": heard})
    flow = sw.Dataflow("ahead")
    rows = flow.source(
        *("s", sw.table(table, batch_rows=batch_rows)),
        event_time="t",
        time_unit="s",
        arrival=arrival,
        ahead="5s",
        on_bad="divert",
    )
    rows.sink("out", sw.collect_sink())
    rows.diverted().select(at=sw.event_time()).sink("bad", sw.collect_sink())
    with sw.Simulation(1) as nodes:
        job = nodes.submit(flow)
        job.wait()
        found = [at // 10**9 for at in job.result("bad")["at"].to_pylist()]
    assert found == ([11, 12, 12] if arrival else [11, 11, 12])
