"""An input whose rows say how far their host's clock is off, read by hand and in a flow."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.ingest import memory
from slackwater.ingest.memory import BlocksInput
from slackwater.ingest.timesync.client import TimeSync
from slackwater.ingest.timesync.key import new_key
from slackwater.ingest.timesync.server import TimeServer
from slackwater.ingest.timesync.synced import SyncedInput, SyncedReader, synced
from slackwater.report.render import report_text
from slackwater.runtime.errors import IngestError, SchemaError, SettingError
from slackwater.runtime.sources.spec import END_OF_INPUT
from tests.support.readers import next_rows

MS, SECOND, HOUR = 10**6, 10**9, 3_600 * 10**9
ROWS = {"t": [1_000, 2_000, 3_000]}
BY = sw.clocks.clock_columns("clock_offset_ns", "clock_bound_ns", unit="ns")


@pytest.fixture
def key(tmp_path: Path) -> str:
    new_key(str(tmp_path / "key"))
    return str(tmp_path / "key")


def ahead_ns() -> int:
    return time.time_ns() + HOUR


def test_each_row_says_how_far_its_hosts_clock_was_off_when_it_was_read(key: str) -> None:
    with TimeServer(key, clock_ns=ahead_ns) as server:
        given = synced(memory.table(ROWS, batch_rows=2), server=server.endpoint, key=key)
        assert given.schema().names == ["t", "clock_offset_ns", "clock_bound_ns"]
        reader = given.open()
        first, second, end = (next_rows(reader) for _ in range(3))
        reader.close()
        reader.close()
    assert end is END_OF_INPUT
    assert isinstance(first, pa.RecordBatch)
    assert isinstance(second, pa.RecordBatch)
    assert first.schema == given.schema()
    assert (len(first), len(second)) == (2, 1)
    for block in (first, second):
        for row in block.to_pylist():
            assert abs(row["clock_offset_ns"] - HOUR) <= row["clock_bound_ns"] < SECOND


def test_clocks_are_compared_again_and_a_server_that_fell_silent_is_counted(key: str) -> None:
    later_ns = [0]

    def steady_ns() -> int:
        return time.monotonic_ns() + later_ns[0]

    with TimeServer(key, clock_ns=lambda: time.time_ns() + later_ns[0]) as server:
        sync = TimeSync(server.endpoint, key, exchanges=2, answer_s=0.5, steady_ns=steady_ns)
        rows = memory.table({"t": [1, 2, 3]}, batch_rows=1)
        reader = SyncedReader(rows, sync, every_ns=100 * SECOND, steady_ns=steady_ns)
        assert server.answered == 2
        later_ns[0] += 100 * SECOND
        reader.poll()
    assert server.answered == 4
    fresh = sync.now()
    later_ns[0] += 100 * SECOND
    block = next_rows(reader)
    reader.close()
    assert isinstance(block, pa.RecordBatch)
    assert reader.clock_counts == {"unanswered_rounds": 1, "refused": 0, "contradictions": 0}
    assert block["clock_bound_ns"][0].as_py() - fresh.bound_ns >= 4 * MS


def test_the_input_hears_which_rows_no_restore_asks_for(key: str) -> None:
    acked: list[bytes] = []

    class Topic(BlocksInput):
        def open(self, name: str = "", at: bytes | None = None) -> Any:
            reader: Any = super().open(name, at)
            reader.ack = acked.append
            return reader

    table = memory.table(ROWS)
    with TimeServer(key) as server:
        given = synced(Topic(table.parts, table.columns), server=server.endpoint, key=key)
        reader = given.open()
        reader.ack(b"7")
        reader.close()
    assert acked == [b"7"]


def test_a_server_that_never_answers_ends_the_run_and_says_so(key: str) -> None:
    with TimeServer(key) as server:
        gone = server.endpoint
    flow = sw.Dataflow("clocks")
    given = synced(memory.table(ROWS), server=gone, key=key)
    flow.source("phones", given, event_time="t", time_unit="ns", clock=BY).sink(
        "out", sw.collect_sink()
    )
    with sw.Simulation() as host, pytest.raises(IngestError, match=f"time server {gone} does not"):
        host.submit(flow).wait()


def test_a_flow_goes_by_the_time_put_right_and_reports_by_how_much(key: str) -> None:
    flow = sw.Dataflow("clocks")
    with TimeServer(key, clock_ns=ahead_ns) as server:
        given = synced(memory.table(ROWS), server=server.endpoint, key=key)
        phones = flow.source("phones", given, event_time="t", time_unit="ns", clock=BY)
        phones.with_columns(at=sw.event_time().cast("int64")).sink("out", sw.collect_sink())
        with sw.Simulation() as host:
            job = host.submit(flow)
            job.wait()
            found: list[dict[str, Any]] = job.result("out").to_pylist()
            report = job.report()
    assert [row["at"] - row["t"] for row in found] == [row["clock_offset_ns"] for row in found]
    (told,) = [stage.source_clock for stage in report.stages if stage.kind == "source"]
    assert abs(told["smallest_offset_ns"] - HOUR) <= told["largest_bound_ns"]
    assert (told["writers"], told["jumps"], told["unanswered_rounds"]) == (1, 0, 0)
    assert "Clocks of sources" in report_text(report)


def test_the_key_does_not_travel_only_the_path_of_its_file(key: str) -> None:
    given = synced(memory.table(ROWS), server="127.0.0.1:1", key=key)
    secret = Path(key).read_text(encoding="ascii").strip()
    travels = pickle.dumps(given)
    assert bytes.fromhex(secret) not in travels
    assert secret.encode() not in travels
    back = pickle.loads(travels)  # noqa: S301 - our own
    assert isinstance(back, SyncedInput)
    assert back.describe() == "table of 3 rows, clock compared with 127.0.0.1:1"


def test_a_column_of_that_name_and_a_wrong_address_are_refused(key: str) -> None:
    taken = memory.table({"t": [1], "clock_offset_ns": [0]})
    with pytest.raises(SchemaError, match="has a column 'clock_offset_ns' of its own"):
        synced(taken, server="127.0.0.1:1", key=key).schema()
    with pytest.raises(SettingError, match="is not an address"):
        synced(taken, server="nowhere", key=key)
    with pytest.raises(SettingError, match="server=None is not an address"):
        synced(taken, server=None, key=key)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="synced: key=None is not a path"):
        synced(taken, server="127.0.0.1:1", key=None)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"synced: 'rows\.parquet' is not an input"):
        synced("rows.parquet", server="127.0.0.1:1", key=key)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"port=70000 \(UDP\) must be from 0"):
        TimeServer(key, port=70_000)  # which would be taken for 4,464
    with pytest.raises(SettingError, match="synced: every"):
        synced(taken, server="127.0.0.1:1", key=key, every="0s")


def test_its_plan_fixes_the_files_and_tells_which_are_not_read(key: str, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("t\n1\n")
    (tmp_path / "other.txt").write_text("")
    given = synced(sw.csv(str(tmp_path)), server="127.0.0.1:1", key=key)
    planned = given.planned()
    assert "other.txt" in planned.notes()[0]
    (tmp_path / "a.csv").write_text("t\n0\n")
    assert planned.inner.files() == [str(tmp_path / "b.csv")]
    plain = synced(memory.table(ROWS), server="127.0.0.1:1", key=key)
    assert (plain.planned(), plain.notes()) == (plain, [])
