"""On Ray an error of a user's output arrives with its traceback, whatever the rows are."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw

pytestmark = pytest.mark.ray
SOON_S = 60


def without_pandas() -> None:
    """Let this process have no pandas, as one where it is not installed."""
    sys.modules["pandas"] = None  # type: ignore[assignment]


def fails(_: pa.RecordBatch) -> None:
    without_pandas()
    raise LookupError("no such stop")


class Failing(sw.connectors.Output, sw.connectors.Sink):
    def describe(self) -> str:
        return "fails"

    def open(self, *_: Any) -> Failing:
        without_pandas()
        return self

    def write(self, _: pa.RecordBatch, first_ordinal: int) -> None:
        del first_ordinal
        raise LookupError("no such stop")


@pytest.mark.parametrize("output", [sw.callback_sink(fails), Failing()], ids=["callback", "own"])
def test_the_users_error_comes_out_of_a_slot_without_pandas(
    cluster: sw.Cluster, output: Any
) -> None:
    odd = pa.array([[1]], pa.list_(pa.duration("ns")))
    flow = sw.Dataflow("odd")
    rows = flow.source("s", sw.table(pa.table({"t": [1], "x": odd})), event_time="t")
    rows.sink("out", output)
    with pytest.raises(sw.SlackwaterError) as caught:
        cluster.submit(flow, placement={"*": "node-1"}).wait(timeout=SOON_S)
    said = str(caught.value)
    assert "raised LookupError: no such stop" in said
    assert 'raise LookupError("no such stop")' in said
    assert "[1 ns]" in said
