"""Bodies of rows, tampered with: refused, or as good as any.

In a process of its own, since what is tested for is that none of them ends it.
"""

from __future__ import annotations

import decimal
import os
import random
import secrets
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from slackwater.ingest.push.reader import manifest_of
from slackwater.ingest.push.wire import MANIFEST, Frame, Kind, frame_of, rows_of
from slackwater.runtime.errors import FrameError
from tests.support.tampering import tampered

ROOT = Path(__file__).resolve().parents[2]
BODIES = 1_500
ROWS = 12
SCHEMA = pa.schema(
    [
        ("value", pa.int64()),
        ("name", pa.string()),
        ("is_late", pa.bool_()),
        ("bytes", pa.large_binary()),
        ("words", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int32())),
        ("inside", pa.struct([("x", pa.float64()), ("y", pa.string())])),
        ("price", pa.decimal128(10, 2)),
    ]
)


def sound_body() -> bytes:
    rows = [
        {
            "value": number,
            "name": "żółć" * number if number % 3 else None,
            "is_late": number % 2 == 0,
            "bytes": b"x" * number,
            "words": ["a"] * number,
            "counts": [("k", number)],
            "inside": {"x": 0.5, "y": "y"},
            "price": decimal.Decimal(number),
        }
        for number in range(ROWS)
    ]
    body: bytes = pa.RecordBatch.from_pylist(rows, schema=SCHEMA).serialize().to_pybytes()
    return body


def use(batch: pa.RecordBatch) -> None:
    """Touch every value in the ways that a flow does."""
    for column in batch.columns:
        column.cast(column.type)
        str(column)
    assert batch.nbytes >= 0
    batch.take(pa.array([ROWS - 1, 0])).serialize()
    batch.slice(3, 5).serialize()
    table = pa.Table.from_batches([batch]).sort_by("value")
    pa.concat_tables([table, table]).combine_chunks().validate(full=True)


def attack(seed: int) -> None:
    """Take in such bodies; print how many were refused."""
    chance, sound, refused = random.Random(seed), sound_body(), 0  # noqa: S311
    for _ in range(BODIES):
        frame = Frame(Kind.DATA, rows=ROWS, body=tampered(sound, chance))
        try:
            use(rows_of(frame, SCHEMA))
        except FrameError:
            refused += 1
    print(refused)  # noqa: T201 for the test that started this process


def test_no_body_that_can_be_made_ends_the_process() -> None:
    seed = secrets.randbelow(2**31)
    attacked = subprocess.run(  # noqa: S603
        [
            sys.executable,
            "-c",
            f"from tests.ingest.test_hostile_bodies import attack; attack({seed})",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert attacked.returncode == 0, (
        f"seed {seed}: {attacked.returncode}\n{attacked.stderr[-2_000:]}"
    )
    assert BODIES / 2 < int(attacked.stdout) < BODIES


@pytest.mark.parametrize("body", [b"", sound_body()[:3], sound_body()[:-200]])
def test_a_body_that_was_cut_off_is_a_frame_error(body: bytes) -> None:
    with pytest.raises(FrameError, match="do not fit"):
        rows_of(Frame(Kind.DATA, rows=ROWS, body=body), SCHEMA)


def test_a_long_body_travels_in_pieces_none_of_which_a_stranger_could_make_longer() -> None:
    long = Frame(Kind.DATA, rows=1, body=bytes(range(256)) * 2**9)
    parts = long.parts()
    assert [len(part) for part in parts[1:]] == [2**16, 2**16]
    assert frame_of(parts) == long
    with pytest.raises(FrameError, match="announces 131072 bytes"):
        frame_of(parts[:-1])


@pytest.mark.parametrize("task", [{"partition": None}, {"frames": -1}, {"rows": None}])
def test_a_manifest_with_holes_is_refused(task: dict[str, int | None]) -> None:
    honest = {"partition": 0, "attempt": 1, "frames": 1, "rows": 1}
    batch = pa.RecordBatch.from_pylist([{**honest, **task}], schema=MANIFEST)
    frame = Frame(Kind.COMMIT, 3, rows=1, body=batch.serialize().to_pybytes())
    with pytest.raises(FrameError, match="manifest of micro-batch 3"):
        manifest_of(frame)
