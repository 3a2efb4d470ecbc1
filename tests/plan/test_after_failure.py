"""What sources and sinks guarantee after a failure, in a job with checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.plan.after_failure import Guarantee, guarantees
from slackwater.runtime.prepare.prepare import prepare

ROWS = {"ts": [1, 2], "k": ["a", "b"]}


@dataclass(frozen=True)
class Feed:
    """A live input."""

    replay: str = "again"

    def describe(self) -> str:
        return "a feed"

    def schema(self) -> pa.Schema:
        return pa.schema([("ts", pa.int64()), ("k", pa.string())])

    def open(self, name: str = "", at: bytes | None = None) -> Any:
        raise AssertionError(f"{name} is not read at {at!r}")


class Board(sw.connectors.Output):
    def __init__(self, **traits: Any) -> None:
        self.traits = sw.connectors.SinkTraits(**traits)

    def describe(self) -> str:
        return "a board"

    def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> Any:
        raise AssertionError(f"{context.sink} is not opened with {schema}")


OUTPUTS: dict[str, Any] = {
    "parquet": sw.parquet_sink("out/p"),
    "jsonl": sw.jsonl_sink("out.jsonl", overwrite=True),
    "collect": sw.collect_sink(),
    "board with ordinals": Board(resumes=True),
    "callback": sw.callback_sink(print),
    "print": sw.print_sink(),
    "board": Board(resumes=False),
}
KEEP = {"parquet", "jsonl", "collect", "board with ordinals"}


def flow_of(given: Any = None, *, slack: str | None = None, **source: Any) -> sw.Dataflow:
    flow = sw.Dataflow("f", slack=slack)
    rows = flow.source(
        "rows", given or sw.table(ROWS), event_time="ts", time_unit="s", **source
    ).dedupe("k", within="1s", name="once")
    for name, output in OUTPUTS.items():
        rows.sink(name, output)
    return flow


def known_of(flow: sw.Dataflow) -> dict[str, Guarantee]:
    return {known.step: known for known in guarantees(flow.steps)}


def held_in(flow: sw.Dataflow) -> frozenset[str]:
    return replace(prepare(flow, ["a"]), has_checkpoints=True).held_sinks


def test_a_sink_that_keeps_its_ordinal_is_written_at_once_where_rows_come_again() -> None:
    known = known_of(flow_of())
    for name in OUTPUTS:
        word = "exactly once" if name in KEEP else "at least once"
        assert (known[name].word, known[name].is_held) == (word, False), name
    assert "those that it has are skipped" in known["parquet"].why
    assert known["callback"].why.endswith("so those since the checkpoint come again")


def test_a_custom_output_that_commits_at_its_end_alone_loses_rows_and_says_so() -> None:
    flow = sw.Dataflow("f")
    rows = flow.source("rows", sw.table(ROWS), event_time="ts", time_unit="s")
    rows.sink("board", Board(resumes=True, only_whole=True))
    known = known_of(flow)["board"]
    assert (known.word, known.is_held) == ("at most once", False)
    assert "rows before the checkpoint are lost" in known.why


def test_in_a_flow_with_slack_these_sinks_hold_and_the_others_may_get_other_rows() -> None:
    flow = flow_of(slack="1s")
    known = known_of(flow)
    assert held_in(flow) == KEEP
    assert {name for name in OUTPUTS if known[name].word == "exactly once"} == KEEP
    assert "the gate of 'once' has a slack" in known["collect"].why
    assert "come again, perhaps others, for the gate of 'once'" in known["print"].why


@pytest.mark.parametrize("replay", ["exact", "again"])
def test_rows_whose_clocks_are_compared_as_they_are_read_do_not_come_again(replay: str) -> None:
    assert held_in(flow_of(Feed(replay))) == frozenset()
    synced = sw.clocks.synced(Feed(replay), server="127.0.0.1:1", key="key")
    flow = flow_of(synced)
    assert held_in(flow) == KEEP
    assert "compares clocks while it reads" in known_of(flow)["collect"].why


@pytest.mark.parametrize(
    ("replay", "why"),
    [
        ("exact", "from a position on"),
        ("again", "from its start on"),
        ("retained", "as long as the origin of its input still has"),
        ("none", "are spooled beside the checkpoints before they count"),
    ],
)
def test_a_source_guarantees_what_its_input_can_give_again(replay: str, why: str) -> None:
    known = known_of(flow_of(Feed(replay)))
    assert (known["rows"].kind, known["rows"].word) == ("source", "exactly once")
    assert why in known["rows"].why
    assert not known["parquet"].is_held, "rows come again, in the same order"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"ahead": "1s"}, "source 'rows' holds early rows by the clock"),
        ({"idle": "1s"}, "source 'rows' has idle="),
    ],
)
def test_a_live_source_that_goes_by_the_clock_makes_its_sinks_hold(
    source: dict[str, Any], why: str
) -> None:
    flow = flow_of(Feed(), **source)
    assert held_in(flow) == KEEP
    assert why in known_of(flow)["jsonl"].why
    assert not held_in(flow_of(Feed()))


def test_a_sink_without_order_is_held_and_its_writers_are_refused(tmp_path: Path) -> None:
    flow = sw.Dataflow("f")
    rows = flow.source("rows", sw.table(ROWS), event_time="ts", time_unit="s")
    once = rows.dedupe("k", within="1s", name="once", replicas=2)
    once.sink("out", sw.parquet_sink(tmp_path / "out"), ordered=False)
    known = known_of(flow)["out"]
    assert (known.word, known.is_held) == ("exactly once", True)
    assert known.why.endswith("(ordered=False), the job is refused")


def test_explain_says_it_for_a_job_with_checkpoints_alone() -> None:
    flow = flow_of()
    head = "after a failure, from the last complete checkpoint on"
    assert head not in flow.explain()
    lines = flow.explain(checkpoints=True).partition(head)[2].splitlines()
    assert len(lines) == 1 + 1 + len(OUTPUTS) + 2
    assert lines[-1] == "by default no checkpoints: no source of the flow is live"
    assert lines[1].startswith("    rows (source): exactly once: its input gives")
