"""What is decided about output, without any file: where parts end, whose lock, what is ours."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.measure.published import published_notes
from slackwater.runtime.measure.report import SinkReport
from slackwater.runtime.sinks.fingerprint import Fingerprint, InputPrint
from slackwater.runtime.sinks.lock import Holder, judged
from slackwater.runtime.sinks.manifest import Manifest, Part, RunRecord
from slackwater.runtime.sinks.output import SinkTraits
from slackwater.runtime.sinks.rolling import RollingPolicy

HOLDER = Holder(
    job="a",
    flow="f",
    sink="out",
    host="h1",
    machine="m1",
    boot="b1",
    pid_space="pid:1",
    pid=7,
    pid_start=100,
    since_ns=0,
    token="t",  # noqa: S106 no password
)


def part_sizes(batches: list[int], *, rows: int) -> list[int]:
    part, sizes = RollingPolicy(SinkTraits(rows=rows)), [0]
    for size in batches:
        left = size
        while left:
            fit, is_full = part.take(left)
            left -= fit
            sizes[-1] += fit
            if is_full:
                sizes.append(0)
    return sizes if sizes[-1] else sizes[:-1]


@given(st.lists(st.integers(0, 30), max_size=20), st.integers(1, 40))
def test_parts_end_by_rows_alone_however_the_batches_were_cut(
    batches: list[int], rows: int
) -> None:
    total = sum(batches)
    expected = [rows] * (total // rows) + ([total % rows] if total % rows else [])
    assert part_sizes(batches, rows=rows) == expected == part_sizes([total], rows=rows)


def test_a_part_is_due_by_its_oldest_row() -> None:
    part = RollingPolicy(SinkTraits(rows=100, every_ns=10))
    assert part.due_ns is None
    part.wrote(5)
    part.wrote(14)
    assert part.due_ns == 15
    part.flushed()
    assert part.due_ns is None


@pytest.mark.parametrize(
    ("there", "start_of_pid", "has_ended", "is_free", "said"),
    [
        (HOLDER, 100, False, False, "runs on this very host"),
        (HOLDER, None, False, True, "is gone"),
        (HOLDER, 101, False, True, "is gone"),  # its number has another process now
        (HOLDER, 100, True, True, "on record"),
        (replace(HOLDER, pid_space="pid:2"), None, False, False, "cannot be seen"),
        (replace(HOLDER, boot="b0"), 100, False, True, "restarted"),
        (replace(HOLDER, boot="b0", machine=""), None, False, False, "cannot be seen"),
        (replace(HOLDER, boot="b0", host="h2"), None, False, False, "cannot be seen"),
        (replace(HOLDER, boot="", machine=""), None, False, False, "cannot be seen"),
    ],
)
def test_a_lock_may_be_taken_over_only_from_one_who_is_certainly_gone(
    there: Holder, start_of_pid: int | None, has_ended: bool, is_free: bool, said: str
) -> None:
    here = replace(HOLDER, job="b", pid=8)
    verdict = judged(
        there, here, start_of_pid=start_of_pid, has_ended=has_ended, is_held_here=False
    )
    assert verdict.is_free == is_free
    assert said in verdict.reason
    assert Holder.from_json(json.loads(json.dumps(there.to_json()))) == there


@pytest.mark.parametrize("is_held_here", [True, False])
def test_a_lock_of_this_process_is_free_once_no_sink_holds_it(is_held_here: bool) -> None:
    here = replace(HOLDER, job="b", token="u")  # noqa: S106 no password
    verdict = judged(HOLDER, here, start_of_pid=100, has_ended=False, is_held_here=is_held_here)
    assert verdict.is_free == (not is_held_here)


MANIFEST = Manifest(
    kind="jsonl",
    schema=(("n", "int64"),),
    run=RunRecord("a", "f", "out", "0a", state="failed", error="so"),
    parts=(Part("part-00000001.jsonl", 3, 24, 9), Part("part-00000002.jsonl", 1, 8)),
    removing=("part-00000003.jsonl",),
    fingerprint=Fingerprint(flow="d", inputs={"s": InputPrint("w", "d")}, release={"p": "1"}),
    epoch=0,
)


def test_a_manifest_comes_back_as_it_was() -> None:
    assert Manifest.from_json(json.loads(json.dumps(MANIFEST.to_json()))) == MANIFEST
    assert MANIFEST.rows == 4


@given(
    st.sampled_from(sorted(MANIFEST.to_json())),
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["", "..", "a/b", "part-1", "\0"])
    | st.lists(st.sampled_from([None, -1, "..", "x/y", ["..", 1, 1, None], ["a", -1, 0, None]])),
)
def test_a_damaged_manifest_is_an_error_and_never_names_what_is_elsewhere(
    field: str, damage: Any
) -> None:
    plain = {**MANIFEST.to_json(), field: damage}
    try:
        made = Manifest.from_json(plain)
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    for name in [*made.removing, *(part.name for part in made.parts)]:
        assert "/" not in name
        assert name not in ("", ".", "..")


def test_a_report_of_a_failed_job_says_which_rows_no_reader_sees() -> None:
    sink = SinkReport("out", "n", rows=12, published=10, waiting=2, notes=["took over"])
    assert published_notes("running", [sink]) == ["sink 'out': took over"]
    assert "10 rows of this job were published, and 2 after" in published_notes("failed", [sink])[1]
    assert published_notes("failed", [SinkReport("collected", "n", rows=3)]) == []
    # Its slot did not answer, and was killed for the stop.
    assert "2 after" in published_notes("stopped", [sink])[1]
    sink.waiting = 0
    assert published_notes("stopped", [sink]) == ["sink 'out': took over"]
