"""Rows of Ray Data come in by their blocks, in order, and results go back as a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest
import ray
import ray.data

import slackwater as sw
from slackwater.ingest.frame_input import FrameInput
from slackwater.runtime.errors import FlowError, IngestError, SchemaError, SettingError
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.sources.spec import Block
from tests.support.readers import next_rows
from tests.support.waiting import until

pytestmark = [
    pytest.mark.ray,
    # Ray Data warns of settings that it makes itself.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::ray.util.annotations.RayDeprecationWarning"),
]

SOON_S = 60.0


def rows_in(data: FrameInput) -> list[dict[str, Any]]:
    """Read an input whose reader waits for blocks."""
    reader, rows = data.open(), list[dict[str, Any]]()

    def has_ended() -> bool:
        block = next_rows(reader)
        if isinstance(block, pa.RecordBatch):
            assert block.schema == data.schema()
            rows.extend(block.to_pylist())
        return block is sw.connectors.END_OF_INPUT

    until(has_ended, within_s=SOON_S, what="the last block")
    return rows


def blocks_in(data: FrameInput, at: bytes | None = None) -> list[Block]:
    """Read an input from a position on, with the position of each block."""
    reader, blocks = data.open("", at), list[Block]()

    def has_ended() -> bool:
        polled = reader.poll()
        if isinstance(polled, Block):
            blocks.append(polled)
        return polled is sw.connectors.END_OF_INPUT

    until(has_ended, within_s=SOON_S, what="the last block")
    return blocks


def test_opened_at_the_position_of_any_block_it_gives_the_rest(cluster: sw.Cluster) -> None:
    """Spark's frames are held alike."""
    del cluster
    parts = [pa.table({"id": range(n, n + 12_000)}) for n in range(0, 36_000, 12_000)]
    parts.insert(1, parts[0].slice(0, 0))
    data = FrameInput(tuple(map(ray.put, parts)), parts[0].schema)
    whole = blocks_in(data)
    assert [len(block.rows) for block in whole] == [10_000, 2_000] * 3
    for number, block in enumerate(whole):
        rest = blocks_in(data, block.at)
        assert [one.rows for one in rest] == [one.rows for one in whole[number:]]
        assert [one.at for one in rest] == [one.at for one in whole[number:]]
    again = FrameInput(tuple(map(ray.put, parts)), parts[0].schema)
    with pytest.raises(IngestError, match="its rows were prepared again since: partition 4"):
        again.open("", whole[-1].at)
    other = FrameInput(data.refs, pa.schema([("id", pa.int32())]))
    with pytest.raises(IngestError, match="it is of another spark frame input"):
        other.open("", whole[-1].at)


def flow_over(data: sw.connectors.Input) -> sw.Dataflow:
    flow = sw.Dataflow("of-ray-data")
    numbers = flow.source("numbers", data, event_time="id")
    numbers.with_columns(twice=sw.col("id") * 2).sink("out", sw.collect_sink())
    return flow


def test_a_dataset_is_read_block_by_block_and_a_result_is_a_dataset(cluster: sw.Cluster) -> None:
    dataset = ray.data.range(25_000, override_num_blocks=4)
    data = sw.ray_dataset(dataset)
    assert data.describe().startswith("ray dataset (")
    assert len(data.refs) >= 4
    job = cluster.submit(flow_over(data))
    assert not imbalances(job.wait(timeout=SOON_S))
    result = job.result("out")
    assert result["id"].to_pylist() == list(range(25_000))
    again = ray.data.from_arrow(result)
    assert again.count() == 25_000
    assert again.take(2) == [{"id": 0, "twice": 0}, {"id": 1, "twice": 2}]


def test_blocks_keep_their_order_though_the_first_is_ready_last(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    ready = str(tmp_path / "ready")

    def slowly(block: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        import os  # noqa: PLC0415 - in Ray's worker
        import threading  # noqa: PLC0415

        pause, looks = threading.Event(), 0
        while block["id"][0] == 0 and looks < 400 and not os.path.exists(ready):
            looks += 1
            pause.wait(0.05)
        if block["id"][0] > 0:
            open(ready, "w").close()
        return block

    dataset = ray.data.range(40, override_num_blocks=4).map_batches(slowly)
    assert [row["id"] for row in rows_in(sw.ray_dataset(dataset))] == list(range(40))
    assert not dataset.context.execution_options.preserve_order, "as it was"


def test_blocks_of_pandas_and_of_other_types_become_one_type(cluster: sw.Cluster) -> None:
    first = pa.table({"t": pa.array(["a", None]), "x": pa.array([1, 2], pa.int32())})
    second = pandas.DataFrame({"x": [0.5, np.nan], "t": ["b", "c"]}, index=[5, 6])
    third = pa.table({"x": [7]})
    dataset = ray.data.from_arrow([first]).union(
        ray.data.from_pandas(second), ray.data.from_arrow(third)
    )
    data = sw.ray_dataset(dataset)
    assert data.schema().names == ["t", "x"]
    assert data.schema().field("x").type == pa.float64()
    assert rows_in(data) == [
        {"t": "a", "x": 1.0},
        {"t": None, "x": 2.0},
        {"t": "b", "x": 0.5},
        {"t": "c", "x": None},
        {"t": None, "x": 7.0},
    ]


def test_a_dataset_without_columns_or_with_types_that_do_not_fit_is_refused(
    cluster: sw.Cluster,
) -> None:
    with pytest.raises(SchemaError, match="the dataset has no columns"):
        sw.ray_dataset(ray.data.range(0))
    mixed = ray.data.from_arrow([pa.table({"x": ["a"]}), pa.table({"x": [[1]]})])
    with pytest.raises(SchemaError, match=r"column 'x': its blocks have different types: .*map_b"):
        sw.ray_dataset(mixed)
    with pytest.raises(SchemaError, match="ray_dataset: Table is not a dataset of Ray Data"):
        sw.ray_dataset(pa.table({"x": [1]}))  # type: ignore[arg-type]
    with pytest.raises(
        SchemaError, match=r"table: .*Dataset is not a table; .*sw\.ray_dataset\(it\)"
    ):
        sw.table(ray.data.range(3))  # type: ignore[arg-type]


def test_types_of_blocks_meet_as_those_of_files_do(cluster: sw.Cluster) -> None:
    at, zones = [1_700_000_000_000], ("UTC", "Asia/Tokyo")
    text = (pa.array(["a"]).dictionary_encode(), pa.array(["b"]))
    blocks = [
        pa.table({"s": one, "t": pa.array(at, pa.timestamp("ms", zone)), "n": pa.array([1], kind)})
        for one, zone, kind in zip(text, zones, (pa.int8(), pa.uint16()), strict=True)
    ]
    data = sw.ray_dataset(ray.data.from_arrow(blocks))
    types = [str(kind) for kind in data.schema().types]
    assert types == ["string", "timestamp[ms, tz=UTC]", "int32"]
    assert [row["s"] for row in rows_in(data)] == ["a", "b"]


def test_a_number_that_no_common_type_holds_is_refused_by_column(cluster: sw.Cluster) -> None:
    blocks = [pa.table({"x": [2**53 + 1]}), pa.table({"x": [1.5]})]
    data = sw.ray_dataset(ray.data.from_arrow(blocks))
    with pytest.raises(IngestError, match=r"column 'x' is int64 here and double .*map_batches"):
        rows_in(data)


def test_options_of_a_dataset_that_are_not_there_are_refused(cluster: sw.Cluster) -> None:
    with pytest.raises(SettingError, match=r"ray_dataset\(\) has no option 'batch_rows'"):
        sw.ray_dataset(ray.data.range(1), batch_rows=5)  # type: ignore[call-arg]


def test_an_error_of_the_dataset_is_told_in_its_own_words(cluster: sw.Cluster) -> None:
    def unlucky(block: Any) -> Any:
        raise ValueError("13 brings bad luck")

    with pytest.raises(IngestError, match="Ray Data failed: ValueError: 13 brings bad luck; corr"):
        sw.ray_dataset(ray.data.range(4).map_batches(unlucky))


def test_a_job_over_a_dataset_does_not_outlive_its_driver(cluster: sw.Cluster) -> None:
    data = sw.ray_dataset(ray.data.range(4))
    with pytest.raises(FlowError, match="rows of Spark or Ray Data, which end with this process"):
        cluster.submit(flow_over(data), detach=True)


def test_the_simulator_reads_a_dataset_too(cluster: sw.Cluster) -> None:
    with sw.Simulation(1) as nodes:
        job = nodes.submit(flow_over(sw.ray_dataset(ray.data.range(100))))
        assert job.result("out")["id"].to_pylist() == list(range(100))


def test_rows_of_a_closed_cluster_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    closed = FrameInput((), pa.schema([("id", pa.int64())]), kind="ray dataset")
    for ask in (closed.schema, closed.open):
        with pytest.raises(IngestError, match=r"rows ended with the cluster.*prepare it again"):
            ask()
