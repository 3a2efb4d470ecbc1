"""Fingerprints of custom inputs: what is wrong with one names its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import IngestError, SchemaError
from tests.support.own_inputs import Feed


class Marked(Feed):
    def __init__(self, mark: Any) -> None:
        super().__init__(lambda: iter([]))
        self.mark = mark

    def fingerprint(self) -> Any:
        if isinstance(self.mark, Exception):
            raise self.mark
        return self.mark


def resumable(mark: Any, folder: Path) -> None:
    flow = sw.Dataflow("marked")
    rows = flow.source("feed", Marked(mark), event_time="t")
    rows.sink("out", sw.jsonl_sink(folder / "out", resume=True))
    with sw.Simulation(nodes=1) as nodes:
        nodes.submit(flow).wait()


@pytest.mark.parametrize("raised", [ValueError("no mark"), sw.SlackwaterError("no mark")])
def test_a_fingerprint_that_raises_names_source_class_and_line(
    raised: Exception, tmp_path: Path
) -> None:
    claim = rf"'feed': Marked\.fingerprint raised {type(raised).__name__}: no mark, at .*py, line "
    with pytest.raises(IngestError, match=claim):
        resumable(raised, tmp_path)


@pytest.mark.parametrize("mark", [None, "mark", ("feed", 7), ("one",)], ids=repr)
def test_a_fingerprint_is_two_texts(mark: Any, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"'feed': Marked\.fingerprint returned .* two texts"):
        resumable(mark, tmp_path)


def test_a_fingerprint_of_two_texts_is_taken(tmp_path: Path) -> None:
    resumable(("feed", "a1"), tmp_path)
    resumable(["feed", "a1"], tmp_path)
