"""Frames through real Spark on a real Ray cluster: Spark on one node, the sources on another."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
import ray
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, udf

from slackwater.actors.checkpoints.spool import SpoolName
from slackwater.actors.nodes.ray_nodes import RayNodes
from slackwater.actors.slot.spooled import SpooledInput
from slackwater.ingest.frame_input import BLOCK_ROWS, FrameInput, FrameParts
from slackwater.ingest.java import prepare_java
from slackwater.ingest.push.streaming import spark_stream
from slackwater.ingest.session import SparkOnRay, current
from slackwater.ingest.spark import spark
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import ClusterError, IngestError, SchemaError, SettingError
from slackwater.runtime.sources.spec import Input
from tests.support.far_source import FarSource
from tests.support.processes import QUICK_JVM
from tests.support.sources import machine, take

LOOKS = 400  # of 0.1 s each: how long a test waits for what must come
FILES, ROWS = 6, 30_000

pytestmark = [
    pytest.mark.spark,
    # PySpark compares versions with distutils; it hides the warning, pytest shows it again. Which
    # of the two it is depends on whether something has loaded setuptools before.
    pytest.mark.filterwarnings("ignore:The distutils package is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings(
        "ignore:distutils Version classes are deprecated:DeprecationWarning"
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two nodes; Java is prepared before they start, as the front door does."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PATH", "JAVA_HOME", "PYSPARK_PYTHON"):
            patch.setenv(name, os.environ.get(name, ""))  # so that what is set is undone
        patch.setenv("PYSPARK_DRIVER_PYTHON", "")
        patch.setenv("JDK_JAVA_OPTIONS", QUICK_JVM)
        prepare_java()
        with RayNodes.local(2, cpus_per_node=2, object_store_mb=150):
            yield


@pytest.fixture(scope="module")
def owner(cluster: None) -> Iterator[SparkOnRay]:
    with SparkOnRay("tests", executors=1, cores=2, resource="node-1") as owner:
        yield owner


@pytest.fixture(scope="module")
def session(owner: SparkOnRay) -> SparkSession:
    return owner.session


@pytest.fixture(scope="module")
def folder(session: SparkSession) -> Iterator[Path]:
    """Files with ids 0 … ROWS - 1, for streams."""
    made = Path(tempfile.mkdtemp(prefix="sw-files-"))
    frame = session.range(0, ROWS, numPartitions=FILES)
    frame.selectExpr("id", "concat('n', id) name").write.parquet(str(made / "rows"))
    yield made
    shutil.rmtree(made)


def far_source() -> Any:
    options = {"num_cpus": 0, "resources": {"node-2": 0.01}, "max_concurrency": 1}
    return ray.remote(FarSource).options(**options).remote()


@pytest.fixture(scope="module")
def reader(cluster: None) -> Any:
    """One actor for all who read to the end, and one after the other."""
    return far_source()


@pytest.fixture
def far(cluster: None) -> Iterator[Callable[[], Any]]:
    """Makes actors of a test's own."""
    made: list[Any] = []

    def make() -> Any:
        made.append(far_source())
        return made[-1]

    yield make
    for actor in made:
        ray.kill(actor)


def read_all(actor: Any, source: Input) -> pa.Table:
    ray.get(actor.open.remote(source), timeout=60)
    blocks, is_end = ray.get(actor.read.remote(), timeout=100)
    assert is_end
    ray.get(actor.close.remote(), timeout=10)
    return pa.Table.from_batches(blocks, source.schema())


def spark_processes() -> list[psutil.Process]:
    """JVMs and Python workers of Spark below this process, however deep; zombies apart."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            is_spark = process.name() == "java" or "pyspark.daemon" in process.cmdline()
            if is_spark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def wait_for(is_so: Callable[[], bool]) -> bool:
    never = threading.Event()
    return any(is_so() or never.wait(0.1) for _ in range(LOOKS))


def test_a_bounded_frame_arrives_whole_in_its_order_and_with_its_types(
    session: SparkSession, reader: Any
) -> None:
    rows = 2 * BLOCK_ROWS + 5
    frame = session.range(0, rows, numPartitions=1).selectExpr(
        "id",
        "cast(id as int) small",
        "id / 3 share",
        "if(id % 5 = 0, null, concat('vehicle ', id)) name",
        "timestamp_micros(1700000000000000 + id * 1000) seen",
        "id % 2 = 0 even",
    )
    source = spark(frame)
    assert source.describe() == "spark frame (1 partition)"
    node = ray.get(reader.open.remote(source), timeout=60)
    assert node != ray.get_runtime_context().get_node_id()
    blocks, _ = ray.get(reader.read.remote(), timeout=60)
    assert [len(block) for block in blocks] == [BLOCK_ROWS, BLOCK_ROWS, 5]
    table = pa.Table.from_batches(blocks)
    assert table.schema.equals(source.schema())
    assert table.schema.types == [
        *(pa.int64(), pa.int32(), pa.float64(), pa.string()),
        *(pa.timestamp("us", tz="UTC"), pa.bool_()),
    ]
    assert not ray.get(reader.knows_spark.remote(), timeout=60)  # its import takes a second
    assert table["id"].to_pylist() == list(range(rows))
    assert table["name"].to_pylist()[:2] == [None, "vehicle 1"]
    first = dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)
    assert table["seen"][1].as_py() == first + dt.timedelta(milliseconds=1)
    assert table["share"].to_pylist()[:3] == [0, 1 / 3, 2 / 3]


def test_many_partitions_are_read_in_order_and_spark_keeps_none_of_them(
    session: SparkSession, reader: Any
) -> None:
    shuffled = session.range(0, 5_000, numPartitions=7).selectExpr("id", "hash(id) % 1000 mixed")
    table = read_all(reader, spark(shuffled, order_by=["mixed", "id"]))
    rows = list(zip(table["mixed"].to_pylist(), table["id"].to_pylist(), strict=True))
    assert rows == sorted(rows)
    assert len(rows) == 5_000
    assert session.sparkContext._jsc.getPersistentRDDs().size() == 0


def test_partitions_of_a_frame_are_read_in_the_order_of_their_times(
    session: SparkSession,
) -> None:
    mixed = session.range(0, 5_000, numPartitions=7).selectExpr("id", "hash(id) h").repartition(6)
    given = spark(mixed, order_by="id", partitions="frame")
    assert isinstance(given, FrameParts)
    assert given.describe() == "spark frame (6 partitions), each read in its own order"
    assert [row.num_rows for row in given.firsts] == [1] * 6
    source, found = machine(given, event_time="id", time_unit="s"), list[int]()

    def reads() -> bool:
        if (message := take(source, 0)) is not None and message.batch is not None:
            found.extend(message.batch.columns["id"].tolist())
        return bool(source.is_over)

    assert wait_for(reads)
    assert sorted(found) == list(range(5_000))
    reader, polled = given.open("00001", None), list[Any]()
    assert wait_for(lambda: polled.append(reader.poll()) or polled[-1] is not None)
    with pytest.raises(IngestError, match="its rows were prepared again since: partition 1"):
        given.open("00002", polled[-1].at)
    with pytest.raises(IngestError, match="no partition '00009'"):
        given.open("00009", None)


def test_a_frame_without_rows_has_columns_and_an_end(session: SparkSession, reader: Any) -> None:
    for frame in (
        session.createDataFrame([], "at timestamp, name string"),
        session.range(9).where("id < 0"),
    ):
        table = read_all(reader, spark(frame))
        assert (table.num_rows, table.column_names) == (0, frame.columns)


def test_columns_to_order_by_are_checked_and_decimals_stay_what_they_are(
    session: SparkSession, reader: Any
) -> None:
    with pytest.raises(SchemaError, match=r"spark: order_by='idd' .*the nearest is 'id'"):
        spark(session.range(1), order_by="idd")
    frame = session.range(2).selectExpr("id", "cast(id as decimal(20, 0)) big")
    table = read_all(reader, spark(frame, order_by="ID"))
    assert table.schema.field("big").type == pa.decimal128(20, 0)  # refused where a step reads it


def test_a_failing_udf_is_an_error_in_the_users_words(session: SparkSession) -> None:
    def speed(metres: int) -> float:
        return 1.0 / (metres - 7)

    with pytest.raises(IngestError) as caught:
        spark(session.range(10).select(udf(speed, "double")(col("id")).alias("speed")))
    told = str(caught.value)
    assert "ZeroDivisionError: float division by zero" in told
    assert "return 1.0 / (metres - 7)" in told
    assert "spark.log" in told
    assert "\tat " not in told
    assert len(told.splitlines()) < 10


def test_a_frame_that_takes_too_long_is_stopped(session: SparkSession) -> None:
    with pytest.raises(IngestError, match="within 1 s"):
        spark(session.range(0, 10**13, numPartitions=1).selectExpr("sum(id * id % 7)"), limit="1s")
    tracker = session.sparkContext.statusTracker()
    assert wait_for(lambda: not tracker.getActiveStageIds())


def test_frames_that_cannot_be_read_are_refused_by_name(session: SparkSession) -> None:
    two = session.range(3).selectExpr("id", "id as id")
    with pytest.raises(SchemaError, match="two columns named 'id'"):
        spark(two)
    with pytest.raises(IngestError, match="use spark_stream"):
        spark(session.readStream.format("rate").load())
    with pytest.raises(IngestError, match="use spark"):
        spark_stream(session.range(3))
    with pytest.raises(SettingError, match="every"):
        spark_stream(session.readStream.format("rate").load(), every="soon")


def stream_of(session: SparkSession, folder: Path) -> Any:
    path = str(folder / "rows")
    schema = session.read.parquet(path).schema
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(path)


def test_calls_that_do_not_fit_are_refused_in_words(session: SparkSession) -> None:
    for read in (spark, spark_stream):
        with pytest.raises(SchemaError, match=r"str is not a frame of Spark; .*sw\.table"):
            read("fixes")  # type: ignore[operator]
        with pytest.raises(SettingError, match=r"has no option 'trigger'"):
            read(session.range(1), trigger="1s")  # type: ignore[operator]
    with pytest.raises(SettingError, match="max_epoch_bytes='1GB' must be a whole number"):
        spark_stream(session.range(1), max_epoch_bytes="1GB")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match=r"order_by=.* is an expression, and names"):
        spark(session.range(1), order_by=col("id").desc())  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="no option 'executor'; the nearest is 'executors'"):
        SparkOnRay("slackwater", executor=1)  # type: ignore[call-arg]


def test_a_stream_arrives_exactly_once_though_a_task_fails_and_runs_again(
    session: SparkSession, folder: Path, reader: Any
) -> None:
    flag = folder / "failed-once"

    def fail_once(number: int) -> int:
        if number == ROWS // 2 and not flag.exists():
            flag.touch()
            raise ValueError("once")
        return number

    frame = stream_of(session, folder).withColumn("id", udf(fail_once, "long")(col("id")))
    table = read_all(reader, spark_stream(frame, every=None))
    assert flag.exists()
    assert sorted(table["id"].to_pylist()) == list(range(ROWS))
    assert table["name"].to_pylist() == [f"n{number}" for number in table["id"].to_pylist()]
    assert wait_for(lambda: not session.streams.active)


def test_a_failing_stream_fails_its_source_in_the_users_words(
    session: SparkSession, folder: Path, far: Callable[[], Any]
) -> None:
    def refuse(number: int) -> int:
        raise ValueError(f"no {number}")

    frame = stream_of(session, folder).withColumn("id", udf(refuse, "long")(col("id")))
    actor = far()
    ray.get(actor.open.remote(spark_stream(frame, every=None)), timeout=60)
    with pytest.raises(IngestError, match="the Spark stream failed") as caught:
        ray.get(actor.read.remote(), timeout=60)
    assert "ValueError: no " in str(caught.value)


def test_a_source_that_leaves_or_dies_ends_its_query(
    session: SparkSession, far: Callable[[], Any]
) -> None:
    endless = session.readStream.format("rate").option("rowsPerSecond", 1000).load()
    for leave in (lambda actor: ray.get(actor.close.remote()), ray.kill):
        actor = far()
        ray.get(actor.open.remote(spark_stream(endless)), timeout=60)
        ray.get(actor.read.remote(rows=1), timeout=60)
        assert session.streams.active
        leave(actor)
        assert wait_for(lambda: not session.streams.active)


def test_a_source_that_dies_is_followed_by_one_that_has_what_was_spooled(
    session: SparkSession, folder: Path, far: Callable[[], Any], tmp_path: Path
) -> None:
    stream = spark_stream(stream_of(session, folder), offsets=tmp_path / "offsets")
    given = SpooledInput(SpoolName(tmp_path, "flow", "rows"), stream, Limits())
    first, second = far(), far()
    ray.get(first.open.remote(given), timeout=60)
    ray.get(first.read.remote(rows=ROWS // FILES), timeout=60)
    ray.kill(first)
    ray.get(second.open.remote(given), timeout=60)
    blocks, _ = ray.get(second.read.remote(rows=ROWS), timeout=100)
    ids = pa.Table.from_batches(blocks, stream.schema())["id"].to_pylist()
    assert sorted(ids) == list(range(ROWS))
    with pytest.raises(IngestError, match=r"is for jobs with checkpoints, and this one has none"):
        ray.get(far().open.remote(stream), timeout=60)


def test_there_is_one_session_to_a_process(owner: SparkOnRay) -> None:
    assert owner.start() is owner.session
    with pytest.raises(IngestError, match="has one already"):
        SparkOnRay("second").start()
    assert current() is owner


def test_stopping_ends_streams_and_processes_and_leaves_the_blocks(
    owner: SparkOnRay, session: SparkSession, far: Callable[[], Any], reader: Any
) -> None:
    """Nearly last: it stops the session that the others share, and starts another."""
    old = session.range(0, 1_000)
    bounded = spark(old)
    endless = session.readStream.format("rate").option("rowsPerSecond", 1000).load()
    actor = far()
    ray.get(actor.open.remote(spark_stream(endless)), timeout=60)
    ray.get(actor.read.remote(rows=1), timeout=60)
    left = actor.read.remote()
    assert len(spark_processes()) >= 4  # driver, master, executor, Python workers
    log = owner.log_path
    owner.stop()
    owner.stop()
    assert ray.get(left, timeout=30)[1]  # the stream has ended
    assert wait_for(lambda: not spark_processes()), spark_processes()
    assert log is not None
    assert not log.exists()
    with pytest.raises(IngestError, match="is not running"):
        _ = owner.session
    assert isinstance(bounded, FrameInput)
    assert read_all(reader, bounded)["id"].to_pylist() == list(range(1_000))
    owner.start()
    assert owner.session.range(5).count() == 5
    with pytest.raises(IngestError, match="another session"):
        spark(old)


def test_a_cluster_without_room_is_told_with_what_there_is(owner: SparkOnRay) -> None:
    """Last: see above."""
    owner.stop()
    greedy = SparkOnRay("greedy", executors=1, cores=64, resource="node-1", start_limit="5s")
    with pytest.raises(ClusterError, match=r"1 × \(64 CPU, 1g\).*free: CPU"):
        greedy.start()
    assert wait_for(lambda: not spark_processes())
    assert current() is None
    assert greedy.log_path is not None
    shutil.rmtree(greedy.log_path.parent)


def test_a_session_needs_a_cluster_and_sensible_numbers() -> None:
    for wrong in ({"executors": 0}, {"cores": 0}, {"memory": "lots"}):
        with pytest.raises(SettingError):
            SparkOnRay("wrong", **wrong)
