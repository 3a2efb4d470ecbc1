"""What `recovery-peers` compares: rows that a reader sees, and rows at the end; peers are named."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from benchmarks.engine.live_poll import expected_totals
from benchmarks.engine.live_poll_feed import Feed
from benchmarks.engine.recovery.peer_engines import LINE, Bytewax, Sight
from benchmarks.engine.recovery.peers import Reader, judged, peers_here


def test_a_feed_goes_on_from_a_position() -> None:
    whole, rest = Feed(0, rate=5_000, rows=90), Feed(0, rate=5_000, rows=90, first=60)
    assert rest.next_number == 60
    assert rest.due() == whole.due()[60:]
    assert rest.next_number == 90


def test_a_reader_counts_new_rows_alone_and_rows_that_go() -> None:
    reader = Reader(lambda: Sight(0, 0))
    sights = ((10, 1.0), (20, 2.0), (12, 3.0), (20, 4.0), (30, 5.0))
    for rows, at_s in sights:
        reader.note(Sight(rows, rows), at_s)
    assert reader.taken_back == 8
    assert reader.gap_s(0.0) == 3.0, "rows that come again are no news"


def test_rows_that_are_lost_doubled_or_wrong_are_told_apart() -> None:
    numbers, totals = np.arange(350), expected_totals(350)
    outcome = judged(np.stack([numbers, totals], axis=1), 1.5, 0, 350)
    assert (outcome.lost, outcome.doubled, outcome.wrong) == (0, 0, 0)
    numbers = np.concatenate([numbers[:340], numbers[:5]])
    totals = totals[numbers]
    totals[7] += 1
    outcome = judged(np.stack([numbers, totals], axis=1), 1.5, 3, 350)
    assert (outcome.lost, outcome.doubled, outcome.wrong) == (10, 5, 1)


def test_a_line_that_is_being_written_is_not_there_yet(tmp_path: Path) -> None:
    engine = Bytewax("python", tmp_path, "append", rate=5_000, rows=10)
    assert engine.look() == Sight(0, 0)
    lines = "".join(f"{n:010d} {n * 31:020d}\n" for n in range(3))
    assert len(lines) == 3 * LINE
    (engine.out / "lines").write_text(lines[:-5])
    assert engine.look() == Sight(2, 2)
    (engine.out / ".part").write_text(lines)
    (engine.out / "lines").write_text(lines)
    assert engine.look() == Sight(3, 3)
    assert engine.results().tolist() == [[0, 0], [1, 31], [2, 62]]


def test_peers_that_are_not_installed_are_named_with_the_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("BYTEWAX", raising=False)
    monkeypatch.setenv("FLINK_PYTHON", str(tmp_path / "python"))
    notes: list[str] = []
    with ExitStack() as until_done:
        assert not dict(peers_here(until_done, notes, 10, quick=False))
    bytewax, flink = notes
    assert "Bytewax is not measured" in bytewax
    assert "BYTEWAX=" in bytewax
    assert "Flink is not measured" in flink
    assert "make flink" in flink
