"""What a sink's output depends on, and what is refused when the flow is built."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError, SinkError
from slackwater.runtime.plan.canonical import canonical_step
from slackwater.runtime.plan.flow_fingerprints import flow_fingerprints
from tests.support.endless import EndlessInput

TABLE = pa.table({"ts": pa.array([1, 2], pa.timestamp("ns")), "n": [1, 2]})


def flow_of(
    build: Callable[[sw.Stream, sw.Dataflow], sw.Stream] = lambda stream, _: stream,
    *,
    source: dict[str, Any] | None = None,
    data: Any = None,
    **settings: Any,
) -> sw.Dataflow:
    flow = sw.Dataflow("f", **settings)
    given = sw.table(TABLE) if data is None else data
    stream = flow.source("numbers", given, event_time="ts", **(source or {}))
    build(stream, flow).sink("out", sw.parquet_sink("out", resume=True))
    return flow


def mark(**options: Any) -> str:
    return flow_fingerprints(flow_of(**options).steps)["out"].flow


def window(stream: sw.Stream, flow: sw.Dataflow) -> sw.Stream:
    return stream.aggregate(by="n", window=sw.tumbling("1s"), name="seconds", c=sw.count())


def closing(stream: sw.Stream, flow: sw.Dataflow) -> sw.Stream:
    size = sw.tumbling("1s")
    return stream.aggregate(
        by="n", window=size, name="seconds", close=sw.closing.ignore(), c=sw.count()
    )


def two_replicas(stream: sw.Stream, flow: sw.Dataflow) -> sw.Stream:
    seconds = window(stream, flow)
    made = seconds.join(seconds, on="n", within="1s", name="w", replicas=2, share="all")
    return made.filter(sw.col("c") > 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"source": {"idle": "1s", "writer": "n", "arrival": "ts"}},
            "source 'numbers' has idle=.* what a silent writer sends .* depends on how rows are",
        ),
        (
            {
                "source": {
                    "writer": "n",
                    "arrival": "ts",
                    "sequence": "n",
                    "out_of_order": "sequence",
                }
            },
            "source 'numbers' goes on without silent writers, .* depends on how rows are read",
        ),
        ({"data": EndlessInput()}, "source 'numbers' reads numbers without end, of which"),
        ({"build": window, "slack": "1s"}, "the gate of 'seconds' has a slack"),
        ({"build": window, "slack": "0s"}, "the gate of 'seconds' has a slack"),
        (
            {"build": closing, "source": {"arrival": "ts"}},
            r"windows of 'seconds' close in time \(close=\): after them no sink can resume yet, "
            "though by arrivals all runs write the same",
        ),
        ({"build": closing}, r"windows of 'seconds' close in time \(close=\) by the clock, for"),
        ({"build": window, "deadline": "5s"}, "the gate of 'seconds' is tuned by a deadline"),
        (
            {"build": two_replicas},
            r"rows of the replicas of 'w' reach sink 'out' as they come: .*; put flow.merge\(…\)",
        ),
    ],
)
def test_resume_is_refused_for_a_flow_whose_output_is_not_one_sequence(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(FlowError, match=f"sink 'out': resume=True .*{said}"):
        flow_of(**options).check()


def test_resume_is_refused_for_rows_that_several_replicas_put_aside() -> None:
    def late(stream: sw.Stream, replicas: int) -> sw.Stream:
        once = stream.dedupe("n", within="1s", name="w", replicas=replicas)
        once.sink("results", sw.parquet_sink("results", resume=True))
        return once.late()

    flow_of(lambda stream, _: late(stream, 1)).check()
    with pytest.raises(FlowError, match=r"sink 'out': .* 'w' reach sink 'out' as they come: they"):
        flow_of(lambda stream, _: late(stream, 2)).check()


def test_resume_is_refused_beside_a_callback_sink_and_taken_behind_a_gate() -> None:
    flow_of(window).check()
    flow_of(lambda stream, flow: flow.merge(two_replicas(stream, flow), name="m")).check()
    flow = flow_of()
    more = flow.source("more", sw.table(TABLE), event_time="ts")
    with pytest.raises(FlowError, match="callback sink 'calls' of this flow would be given again"):
        more.sink("calls", sw.callback_sink(print))


def test_what_a_function_closes_over_counts_whatever_its_fields_are_called() -> None:
    @dataclass
    class Settings:
        speed: int  # of a source it would not count

    @dataclass
    class Doubling:
        factor: int = 2

        def __call__(self, columns: Any) -> Any:
            return {"n": columns["n"] * self.factor}

    @dataclass
    class Adding:
        factor: int = 2

        def __call__(self, columns: Any) -> Any:
            return {"n": columns["n"] + self.factor}

    Adding.__qualname__, Adding.__name__ = Doubling.__qualname__, Doubling.__name__

    def by(function: Any) -> str:
        return mark(
            build=lambda stream, _: stream.map_batches(function, schema={"n": "int64"}, name="m")
        )

    def set_to(speed: int, log: Any = None) -> Any:
        settings = Settings(speed)
        return lambda columns: {"n": columns["n"] + settings.speed, "log": log}

    assert by(set_to(1)) == by(set_to(1)) != by(set_to(2))
    assert by(Doubling()) == by(Doubling()) != by(Adding())
    logged = by(set_to(1, logging.getLogger("ours")))
    logging.getLogger("of somebody else")
    assert by(set_to(1, logging.getLogger("ours"))) == logged


def test_a_mark_is_that_of_the_steps_and_of_the_functions_code() -> None:
    def added(by: int) -> Callable[[sw.Stream, sw.Dataflow], sw.Stream]:
        def add(columns: Any) -> Any:
            return {"n": columns["n"] + by}

        return lambda stream, _: stream.map_batches(add, schema={"n": "int64"}, name="add")

    def scaled(by: int) -> Callable[[sw.Stream, sw.Dataflow], sw.Stream]:
        def scale(columns: Any) -> Any:
            return {"n": columns["n"] * by}

        return lambda stream, _: stream.map_batches(scale, schema={"n": "int64"}, name="add")

    def bound(by: int) -> Callable[[sw.Stream, sw.Dataflow], sw.Stream]:
        return lambda stream, _: stream.map_batches(
            partial(lambda n, columns: {"n": columns["n"] + n}, by), schema={"n": "int64"}, name="a"
        )

    def kept(value: Any) -> Callable[[sw.Stream, sw.Dataflow], sw.Stream]:
        return lambda stream, _: stream.filter(sw.col("n") == value, name="keep")

    builds = [added(1), added(2), scaled(1), bound(1), bound(2), kept(1), kept(2), kept(1.0)]
    marks = [mark(build=build) for build in builds]
    assert len(set(marks)) == len(builds)
    assert mark(build=added(1)) == marks[0]
    assert mark(build=bound(2)) == marks[4]
    assert mark(source={"speed": 10.0}) == mark()
    assert mark(source={"time_unit": "s"}) != mark()


@pytest.mark.parametrize(
    ("settings", "number"),
    [({}, "None"), ({"slack": "0s"}, "-1"), ({"slack": "1us"}, "1000"), ({"deadline": "1s"}, "-2")],
)
def test_a_rule_counts_as_the_number_that_it_was_so_that_older_output_can_be_gone_on_with(
    settings: dict[str, str], number: str
) -> None:
    flow = sw.Dataflow("f", **settings)
    window(flow.source("numbers", sw.table(TABLE), event_time="ts"), flow)
    text = canonical_step(flow.steps["seconds"])
    assert f"slack_ns={number}" in text
    assert "release" not in text


def test_a_flow_without_newer_settings_has_the_mark_that_it_had_before_there_were_any() -> None:
    """Written by the release before drift=, close=, clock= and sequence=: its output is gone on."""
    flow = sw.Dataflow("f")
    rows = pa.table({"ts": pa.array([1, 2], pa.timestamp("ns")), "n": [1, 2], "v": [0.5, 1.5]})
    read: dict[str, Any] = {"event_time": "ts", "arrival": "ts"}
    a, b = (
        flow.source(name, sw.table(rows), out_of_order="sort", disorder="1s", **read)
        for name in "ab"
    )
    pairs = a.filter(sw.col("v") > 0).join(b, on="n", within="1s", name="pairs")
    sums = pairs.aggregate(by="n", window=sw.sliding("2s", "1s"), name="sums", s=sw.sum("v"))
    sums.sink("out", sw.parquet_sink("out", resume=True))
    assert flow_fingerprints(flow.steps)["out"].flow == (
        "774bdc8f5388704ede1346229354c74026936c814cb19732b55044094f20a6de"
    )


@pytest.mark.parametrize("option", ["overwrite", "resume"])
def test_a_sink_that_would_destroy_what_a_source_reads_is_refused_when_built(
    tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(TABLE, data / "numbers.parquet")
    (tmp_path / "link").symlink_to(data)
    monkeypatch.chdir(tmp_path)

    def built(reads: str, writes: str) -> None:
        flow = sw.Dataflow("f")
        stream = flow.source("numbers", sw.parquet(reads), event_time="ts")
        stream.sink("out", sw.parquet_sink(writes, **{option: True}))  # type: ignore[arg-type]
        flow.check()

    for reads, writes in (
        ("data", "data"),
        ("data/numbers.parquet", "data/numbers.parquet"),
        ("data/*.parquet", str(data)),
        ("link", str(data)),
        ("data", "link/"),
        (str(data), "data/deeper/out"),
        ("data/**/*.parquet", "data/deeper/out"),
        ("*/*.parquet", "data"),
        ("link/*.parquet", "data/new.parquet"),
    ):
        with pytest.raises(FlowError, match=f"{option}=True, and source 'numbers' reads there"):
            built(reads, writes)
    for reads, writes in (
        ("data", "out"),
        ("data", "data/_out"),
        ("data/numbers.parquet", "data/other.parquet"),
        ("data/n*.parquet", "data"),
        ("*/n*.parquet", "out"),
        ("data", "dat"),
    ):
        built(reads, writes)


def test_the_print_of_an_input_changes_with_its_files_and_not_with_time(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(TABLE, tmp_path / name)
    given = sw.parquet(tmp_path)
    words, digest = given.fingerprint()
    assert words.startswith("2 files of ")
    assert given.fingerprint() == (words, digest)
    pq.write_table(TABLE.slice(1), tmp_path / "b.parquet")
    assert given.fingerprint()[1] != digest
    assert sw.table(TABLE).fingerprint() == sw.table(TABLE).fingerprint()
    assert sw.table(TABLE).fingerprint()[1] != sw.table(TABLE.slice(1)).fingerprint()[1]


# -- the whole way, in the simulator -----------------------------------------------------------


def joined(folder: Path, *, out: Path, **options: Any) -> sw.Dataflow:
    flow = sw.Dataflow("pairs")
    left, right = (
        flow.source(name, sw.parquet(folder / f"{name}.parquet"), event_time="ts")
        for name in ("left", "right")
    )
    pairs = left.join(right, on="k", within="3ms", name="join")
    pairs.sink("out", sw.jsonl_sink(out, rows=50, resume=True, **options))
    return flow


def test_a_rerun_goes_on_behind_what_is_committed_and_counts_it_by_name(tmp_path: Path) -> None:
    for name, shift in (("left", 0), ("right", 1)):
        times = [n * 1_000_000 + shift for n in range(200)]
        data = {"ts": pa.array(times, pa.timestamp("ns")), "k": [n % 3 for n in range(200)]}
        pq.write_table(pa.table({**data, name: list(range(200))}), tmp_path / f"{name}.parquet")
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    with sw.Simulation(3) as place:
        first = place.submit(joined(tmp_path, out=whole)).wait()
        assert first.ledger.is_balanced
        parts = sorted(whole.glob("*.jsonl"))
        assert len(parts) > 5
        cut.mkdir()
        for part in parts[:3]:
            (cut / part.name).write_bytes(part.read_bytes())
        from dataclasses import replace  # noqa: PLC0415

        from slackwater.actors.sinks.output_path import OutputPath  # noqa: PLC0415

        known = (
            OutputPath("out", whole, kind="jsonl", is_file=False, token="0" * 16).look().manifest
        )
        assert known is not None
        aside = OutputPath("out", cut, kind="jsonl", is_file=False, token="0" * 16)
        killed = replace(known.run, state="writing")
        aside.write_manifest(replace(known, parts=known.parts[:3], run=killed, is_whole=False))
        again = place.submit(joined(tmp_path, out=cut)).wait()
        assert again.ledger.is_balanced
        (sink,) = again.sinks
        assert (sink.already_committed, sink.parts) == (150, len(parts))
        assert sink.rows == first.sinks[0].rows - 150 == sink.published
        assert any("150 rows were already committed" in note for note in again.notes)
        for part in parts:
            assert (cut / part.name).read_bytes() == part.read_bytes()
        flow = joined(tmp_path, out=cut)
        flow.source("l2", sw.table(TABLE), event_time="ts").sink("other", sw.collect_sink())
        assert place.submit(flow).wait().sinks[0].rows == 0  # another sink is no matter
        pq.write_table(pq.read_table(tmp_path / "left.parquet")[:100], tmp_path / "left.parquet")
        with pytest.raises(SinkError, match="source 'left' read something else"):
            place.submit(joined(tmp_path, out=cut))


def test_in_virtual_time_rows_are_published_when_they_are_due(tmp_path: Path) -> None:
    flow = sw.Dataflow("paced")
    times = pa.array([n * 400_000_000 for n in range(10)], pa.timestamp("ns"))
    paced = flow.source("n", sw.table({"ts": times, "n": range(10)}), event_time="ts", speed=1.0)
    paced.sink("out", sw.jsonl_sink(tmp_path, every="1s"))
    with sw.Simulation(1) as place:
        report = place.submit(flow).wait()
    assert report.sinks[0].parts == 4  # 0, 0.4, 0.8 s | 1.2, 1.6, 2 s | …
    sizes = [len(part.read_text().splitlines()) for part in sorted(tmp_path.glob("*.jsonl"))]
    assert sizes == [3, 3, 3, 1]


@pytest.mark.parametrize(
    ("options", "words"),
    [({}, ""), ({"on_bad": "skip"}, ", on_bad='skip'"), ({"columns": ["n"]}, ", columns=('n',)")],
)
def test_the_settings_of_an_input_are_in_the_words_of_its_print(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    (tmp_path / "in.jsonl").write_text('{"n": 1}\n')
    said, _ = sw.jsonl(tmp_path / "in.jsonl", **options).fingerprint()
    assert said == f"1 file of 9 bytes{words}"


def test_the_form_of_a_sink_is_told_in_words() -> None:
    for options, words in (
        ({}, "the default rows="),
        ({"rows": 5}, "rows=5"),
        ({"sep": ";", "header": False}, "the default rows=, sep=';', no header"),
    ):
        flow = sw.Dataflow("f")
        source = flow.source("rows", sw.table(TABLE), event_time="ts")
        source.sink("out", sw.csv_sink("out", **options))  # type: ignore[arg-type]
        assert flow_fingerprints(flow.steps)["out"].form == words
