"""How an output of files goes on at a position, decided from what is there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slackwater.runtime.errors import SinkError
from slackwater.runtime.sinks.fingerprint import SinkRun
from slackwater.runtime.sinks.manifest import Manifest, Part, RunRecord
from slackwater.runtime.sinks.open_decision import ExistingOutput
from slackwater.runtime.sinks.position import FilePosition, GoOn, go_on, position_at_start

TOKEN = "0123456789abcdef"  # noqa: S105 - of a run
PARTS = tuple(Part(f"part-{n:08d}.jsonl", 5, 50) for n in range(1, 6))
AT = FilePosition(
    token=TOKEN,
    has_begun=True,
    published=1,
    earlier=0,
    staged=PARTS[1:3],
    part=PARTS[3]._replace(rows=2, bytes=20),
    rows=17,
)
HIDDEN = {"part-00000002.jsonl": 50, "part-00000003.jsonl": 50, "part-00000004.jsonl": 47}


def there(published: int, *, token: str = TOKEN) -> ExistingOutput:
    record = RunRecord(job="j", flow="f", sink="out", token=token)
    parts = PARTS[:published]
    return ExistingOutput(
        sink="out",
        path="/out",
        manifest=Manifest(kind="jsonl", schema=(("n", "int64"),), run=record, parts=parts),
        shown={part.name: part.bytes for part in parts},
        hidden={},
    )


def decided(published: int, *, replaces: bool = False, **making: int) -> GoOn:
    names = {f"part-0000000{name[-1]}.jsonl": size for name, size in making.items()}
    return go_on(there(published), AT, making=names or HIDDEN, replaces=replaces)


def test_nothing_was_published_since_so_hidden_parts_are_as_at_the_checkpoint() -> None:
    made = decided(1)
    assert (made.parts, made.staged, made.part) == (PARTS[:1], PARTS[1:3], AT.part)
    assert made.rows == AT.rows


@pytest.mark.parametrize(
    ("published", "staged", "is_made", "rows"),
    [(2, PARTS[2:3], True, 17), (3, (), True, 17), (4, (), False, 20), (5, (), False, 25)],
)
def test_parts_that_were_published_since_stay_and_the_others_are_hidden_still(
    published: int, staged: tuple[Part, ...], is_made: bool, rows: int
) -> None:
    made = decided(published)
    assert made.parts == PARTS[:published]
    assert (made.staged, made.part is not None, made.rows) == (staged, is_made, rows)


@pytest.mark.parametrize(
    ("making", "said"),
    [
        ({"p2": 50, "p3": 50, "p4": 19}, "part in the making, part-00000004.jsonl, has 19 bytes"),
        ({"p2": 50, "p3": 50}, "part in the making, part-00000004.jsonl, is gone"),
        ({"p2": 50, "p3": 51, "p4": 20}, "hidden part part-00000003.jsonl has 51 bytes"),
    ],
)
def test_a_hidden_part_that_changed_is_refused_by_name(making: dict[str, int], said: str) -> None:
    with pytest.raises(SinkError, match=f"cannot go on at the checkpoint: its {said}"):
        decided(1, **making)


def test_fewer_published_parts_than_at_the_checkpoint_are_refused() -> None:
    with pytest.raises(SinkError, match="it has 0 parts, and the checkpoint 1"):
        decided(0)


def test_an_output_of_another_run_is_refused_unless_it_is_to_be_replaced() -> None:
    other = there(3, token="f" * 16)
    with pytest.raises(SinkError, match="15 rows of job 'j', and the checkpoint is of another"):
        go_on(other, AT, making=HIDDEN, replaces=False)
    at = replace(AT, published=0, staged=(), part=PARTS[0], rows=5)
    made = go_on(other, at, making={PARTS[0].name: 50}, replaces=True)
    assert (made.is_ours, made.parts, made.part) == (False, (), PARTS[0])


def test_a_position_survives_its_checkpoint_and_another_value_is_refused_by_name() -> None:
    assert FilePosition.from_bytes(AT.to_bytes(), sink="out") == AT
    for wrong in (b"ARROW1", b"[]", b'{"token": 3}', b"\xff"):
        with pytest.raises(SinkError, match="sink 'out': the checkpoint has a position that"):
            FilePosition.from_bytes(wrong, sink="out")


def test_a_job_that_begins_again_knows_its_own_output_by_its_id() -> None:
    mine, other = SinkRun(job="j", flow="f"), SinkRun(job="k", flow="f")
    at = position_at_start(there(3), mine)
    assert at is not None
    assert go_on(there(3), at, making={}, replaces=False).rows == 15
    assert position_at_start(there(3), other) is None
