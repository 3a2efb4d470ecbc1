"""Inputs around another pass on what that says of itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.actors.checkpoints.spool import SpoolName
from slackwater.actors.slot.read_ahead import ReadAheadInput
from slackwater.actors.slot.spooled import SpooledInput
from slackwater.ingest.push.stream_input import StreamInput
from slackwater.ingest.push.wire import Keys
from slackwater.runtime.config import Limits
from slackwater.runtime.sources.around import InputAround
from slackwater.runtime.sources.input_part import InputPart
from slackwater.runtime.sources.spec import Input, InputTraits, Partition, traits_of
from tests.support.endless import EndlessInput

SCHEMA = pa.schema([("ts", pa.int64())])


class Topic:
    """Input that says of itself all that one can."""

    blocks_stay = True
    is_history = False
    on_bad = "divert"
    grows = True
    most_open = 3
    replay: str = "exact"
    ends_with_driver = True
    keeps_offsets = True

    def describe(self) -> str:
        return "topic"

    def schema(self) -> pa.Schema:
        return SCHEMA

    def partitions(self) -> list[Partition]:
        return [Partition("a"), Partition("b")]

    def open(self, name: str = "", at: bytes | None = None) -> Any:
        raise NotImplementedError


def read_ahead(given: Input) -> InputAround:
    return ReadAheadInput("topic", given, lambda: None)


def synced(given: Input) -> InputAround:
    return sw.clocks.synced(given, server="127.0.0.1:1", key="key")


def spooled(given: Input) -> InputAround:
    return SpooledInput(SpoolName(Path("folder"), "flow", "topic"), given, Limits())


def part(given: Input) -> InputAround:
    return InputPart(given, index=0, of=1, known=("a",))


PASSED = {
    "diverts": True,
    "has_partitions": True,
    "grows": True,
    "most_open": 3,
    "says_replay": True,
    "ends_with_driver": True,
    "keeps_offsets": True,
    "blocks_stay": True,
}


@pytest.mark.parametrize("around", [read_ahead, synced, spooled, part])
def test_an_input_around_another_has_its_traits(around: Callable[[Input], InputAround]) -> None:
    given = around(Topic())
    traits = traits_of(given)
    assert {name: getattr(traits, name) for name in PASSED} == PASSED
    assert given.describe().startswith("topic")
    assert given.schema().names[0] == "ts"
    assert given.partitions is not None
    assert [partition.name for partition in given.partitions()] == ["a", "b"]


def stamped(given: Input) -> InputAround:
    return sw.stamped(given)


@pytest.mark.parametrize("around", [read_ahead, synced, spooled, stamped])
def test_an_input_around_a_silent_one_says_no_more(around: Callable[[Input], InputAround]) -> None:
    traits = traits_of(around(EndlessInput()))
    assert (traits.says_replay, traits.has_partitions, traits.ends_with_driver) == (False,) * 3


def test_a_part_of_an_input_is_read_as_the_whole_is_with_its_optional_methods() -> None:
    given = sw.csv("*.csv", partitions="files")
    own = InputPart(given, index=0, of=1, known=("a",))
    assert own.traits == traits_of(given)
    names = ("first_row", "fingerprint", "notes", "reads_at")
    assert [getattr(own, n) == getattr(given, n, None) for n in names] == [True] * len(names)
    assert InputPart(Topic(), index=0, of=1, known=()).fingerprint is None


def test_what_is_of_the_reading_is_not_passed_on() -> None:
    inline = InputTraits(reads_inline=True, wakes=True, is_named=True, shows_first_rows=True)
    assert inline.passed_on() == InputTraits()


def test_a_synced_spark_stream_with_offsets_is_a_stream_that_goes_on() -> None:
    keys = Keys.new()
    stream = StreamInput(
        "tcp://127.0.0.1:1", keys, keys.public, SCHEMA, None, 1 << 20, keeps_offsets=True
    )
    for given in (stream, synced(stream), read_ahead(synced(stream))):
        traits = traits_of(given)
        assert traits.replay == "none"
        assert traits.skips_spooled
        assert traits.ends_with_driver
        assert traits.keeps_offsets
