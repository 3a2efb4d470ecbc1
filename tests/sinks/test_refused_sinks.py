"""Custom sinks and traits that cannot mean what they say are refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError, SinkError
from slackwater.runtime.sinks.fingerprint import Fingerprint, InputPrint


class Plain(sw.connectors.Sink):
    def write(self, rows: Any, first_ordinal: int) -> None: ...


class Asynchronous(sw.connectors.Sink):
    async def write(self, rows: Any, first_ordinal: int) -> None: ...  # type: ignore[override]


class Yielding(sw.connectors.Sink):
    def write(self, rows: Any, first_ordinal: int) -> Any:
        yield rows, first_ordinal


class LateFlush(Plain):
    async def flush(self) -> None: ...  # type: ignore[override]


class Resumed(Plain):
    def last_ordinal(self) -> int:
        return 1


def run(sink: type[sw.connectors.Sink], **traits: Any) -> sw.JobReport:
    class Into(sw.connectors.Output):
        def describe(self) -> str:
            return "nowhere"

        def open(self, *_: Any) -> sw.connectors.Sink:
            return sink()

    Into.traits = sw.connectors.SinkTraits(**traits)
    flow = sw.Dataflow("refused")
    rows = flow.source("rows", sw.table({"t": [0, 1, 2]}), event_time="t", time_unit="s")
    rows.sink("out", Into())
    with sw.Simulation() as nodes:
        return nodes.submit(flow).wait()


@pytest.mark.parametrize(
    ("sink", "claim"),
    [
        (Asynchronous, "Asynchronous.write is async or a generator"),
        (Yielding, "Yielding.write is async or a generator"),
        (LateFlush, "LateFlush.flush is async or a generator"),
    ],
)
def test_a_sink_that_would_lose_rows_is_refused(sink: type[sw.connectors.Sink], claim: str) -> None:
    with pytest.raises(SinkError, match=rf"sink 'out': .*{claim}"):
        run(sink)


@pytest.mark.parametrize(
    ("traits", "claim"),
    [
        ({"rows": 2.5}, "rows=2.5 must be a whole number, 1 or more"),
        ({"rows": "10"}, "rows='10' must be a whole number"),
        ({"rows": True}, "rows=True must be a whole number"),
        ({"every_ns": "10s"}, "every_ns='10s' must be a whole number"),
        ({"resumes": "yes"}, "resumes='yes' must be True or False"),
    ],
)
def test_traits_of_a_sink_are_what_their_types_say(traits: Any, claim: str) -> None:
    with pytest.raises(SettingError, match=claim):
        sw.connectors.SinkTraits(**traits)


def test_rows_that_were_committed_before_are_noted_once() -> None:
    notes = run(Resumed, resumes=True).notes
    assert [note for note in notes if "already committed" in note] == [
        "sink 'out': 2 rows were already committed by an earlier run and left out"
    ]


def test_a_fingerprint_is_kept_as_json() -> None:
    one = Fingerprint(flow="f", inputs={"a": InputPrint("a file", "1f")}, release={"ray": "2"})
    assert Fingerprint.from_json(json.loads(json.dumps(one.to_json()))) == one
