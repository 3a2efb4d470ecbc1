"""What a pattern may be written as, what that is in its normal form, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import (
    ColumnError,
    DuplicateName,
    FlowError,
    SettingError,
    SlackwaterError,
    TypeMismatch,
)
from slackwater.runtime.patterns.normalise import normal_of
from slackwater.runtime.patterns.operator.step import PatternStep
from slackwater.runtime.plan.canonical import canonical_step

A, B, C = (sw.patterns.event(name, of_type=name.lower()) for name in "ABC")
HIGH = sw.patterns.event("high", where=(sw.col("v") > A["v"]) & (sw.col("v") < 9))
ROWS = pa.table({"ts": [1], "kind": ["a"], "v": [1], "x": [0.5]})


def rows() -> sw.Stream:
    flow = sw.Dataflow("patterns")
    return flow.source("rows", sw.table(ROWS), event_time="ts", time_unit="ns")


def step_of(*parts: Any, **settings: Any) -> PatternStep:
    stream = rows()
    built = stream.pattern(sw.patterns.seq(*parts), **{"type": "kind", "within": "1s"} | settings)
    step = built.flow.steps[built.name]
    assert isinstance(step, PatternStep)
    return step


def places_of(*parts: Any) -> list[Any]:
    return [
        [
            (one.asked, one.count, one.distinct, one.least, one.most, one.barred)
            for one in each.places
        ]
        for each in normal_of(sw.patterns.seq(*parts), step="s").alternatives
    ]


def test_each_word_has_its_place_in_the_normal_form() -> None:
    assert places_of(A, sw.patterns.no(B), C) == [
        [((0,), 1, None, 1, 1, ()), ((2,), 1, None, 1, 1, (1,))]
    ]
    assert places_of(sw.patterns.any_of(2, A, B, C)) == [[((0, 1, 2), 2, None, 1, 1, ())]]
    assert places_of(sw.patterns.all_of(A, B)) == [[((0, 1), 2, None, 1, 1, ())]]
    assert places_of(sw.patterns.any_of(3, A, distinct="v")) == [[((0,), 3, "v", 1, 1, ())]]
    assert places_of(A | B) == [[((0, 1), 1, None, 1, 1, ())]]
    assert places_of(sw.patterns.repeat(A, 3)) == [[((0,), 1, None, 3, 3, ())]]
    assert places_of(sw.patterns.repeat(A, 2, 5)) == [[((0,), 1, None, 2, 5, ())]]
    assert places_of(sw.patterns.repeat(A | B, at_least=1)) == [[((0, 1), 1, None, 1, None, ())]]
    assert len(places_of(sw.patterns.either(sw.patterns.seq(A, B), C), A)) == 2
    assert normal_of(sw.patterns.seq(A, sw.patterns.no(B | C)), step="s").alternatives[
        0
    ].barred_after == (1, 2)


def test_a_predicate_is_taken_apart_into_what_reads_its_row_and_what_reads_earlier_ones() -> None:
    (_, high) = normal_of(sw.patterns.seq(A, HIGH), step="s").asked
    assert str(high.where) == 'col("v") < 9'
    assert str(high.also) == 'col("v") > col("A.v")'
    assert high.refers == {"A"}


def test_what_leaves_has_the_columns_of_events_that_are_there_just_once() -> None:
    step = step_of(A, sw.patterns.repeat(B, at_least=1), C, window=sw.tumbling("1s"), within=None)
    assert step.schema.names == [
        "window_start",
        *("A_ts", "A_kind", "A_v", "A_x"),
        *("C_ts", "C_kind", "C_v", "C_x"),
        "events",
    ]
    assert step_of(A, B, selection="cumulative").schema.names == ["events"]


def test_alike_patterns_are_the_same_step_and_others_are_not() -> None:
    assert canonical_step(step_of(A, HIGH)) == canonical_step(step_of(A, HIGH))
    assert canonical_step(step_of(A, HIGH)) != canonical_step(step_of(A, sw.patterns.no(B), HIGH))


def test_a_feature_is_part_of_the_step_what_it_reads_and_what_is_said_of_it() -> None:
    window: dict[str, Any] = {"window": sw.tumbling("1s"), "within": None}
    plain = step_of(A, B, **window, shed=sw.shedding.espice("1s"))
    step = step_of(
        A, B, **window, shed=sw.shedding.espice("1s", feature=(sw.col("v") + 1) % 2 == 0)
    )
    assert plain.own_columns == {"kind"}
    assert step.own_columns == {"kind", "v"}
    assert step.reads(0, frozenset(), frozenset()) == {"kind", "v"}
    assert step.pruned(frozenset({"events"}), keeps_late=False).own_columns == {"kind", "v"}
    assert canonical_step(step) != canonical_step(plain)
    said = 'espice, by (col("v") + 1) % 2 == 0 too where that loses fewer matches, to keep 1 s'
    assert f"shed     {said}" in list(step.explained({}))
    for fine in (sw.col("kind"), sw.col("v"), sw.event_time() % 7):
        assert shedding(fine)()


def test_explain_says_the_pattern_in_words() -> None:
    flow = sw.Dataflow("patterns")
    flow.source("rows", sw.table(ROWS), event_time="ts", time_unit="ns").pattern(
        sw.patterns.seq(
            A, sw.patterns.no(B), C, sw.patterns.any_of(2, A, B), sw.patterns.repeat(C, 1, 3)
        ),
        type="kind",
        window=sw.patterns.opened_by(A, within="5s"),
        matches=1,
        shed=sw.shedding.espice("1s"),
    )
    text = flow.explain()
    assert "A → no B → C → 2 of A, B → C, 1 to 3 times" in text
    assert "windows of 5.00 s, one from each A on" in text
    assert "; 1 a window" in text
    assert "stretches of the stream, to keep 1 s" in text


def pattern(*parts: Any, **settings: Any) -> Callable[[], object]:
    return lambda: step_of(*parts, **settings)


def shedding(feature: Any) -> Callable[[], object]:
    shed = sw.shedding.espice("1s", feature=feature)
    return pattern(A, window=sw.tumbling("1s"), within=None, shed=shed)


LOW = sw.patterns.event("low", where=sw.col("v") > 0)
BARE = sw.patterns.event("bare", where=sw.col("v"))
MOST = "must be 1,000,000,000,000,000 at most, and no stream has so many events"
REFUSED: dict[str, tuple[Callable[[], object], type[SlackwaterError], str]] = {
    "no scope": (pattern(A, B, within=None), SettingError, "every event would be kept for ever"),
    "two scopes": (pattern(A, B, window=sw.tumbling("1s")), SettingError, "give one"),
    "no window": (
        pattern(A, window="1s", within=None),
        SettingError,
        "is not a window; write sw.tumbling",
    ),
    "no length": (
        pattern(A, B, within=0),
        SettingError,
        "within=0 must be a whole number, 1 or more",
    ),
    "of_type without type": (pattern(A, B, type=None), FlowError, "the pattern no type="),
    "a type that cannot be": (
        pattern(A, sw.patterns.event("D", of_type=3)),
        TypeMismatch,
        "of_type 3 can never be in column 'kind', which is string",
    ),
    "no such column": (
        pattern(A, sw.patterns.event("D", where=sw.col("zz") > 1)),
        ColumnError,
        "there is no column 'zz'",
    ),
    "an earlier event without the column": (
        pattern(A, sw.patterns.event("D", where=sw.col("v") > A["zz"])),
        ColumnError,
        "there is no column 'A.zz'",
    ),
    "no predicate": (pattern(BARE), TypeMismatch, "must be true or false"),
    "reads what comes later": (pattern(HIGH, A), FlowError, "surely stands before it"),
    "reads what is not there": (pattern(B, HIGH), ColumnError, "there is no column 'A.v'"),
    "reads what is repeated": (
        pattern(sw.patterns.repeat(A, 2), HIGH),
        FlowError,
        "surely stands before",
    ),
    "reads itself": (
        pattern(A, sw.patterns.event("me", where=sw.col("v") > sw.patterns.event("me")["v"])),
        FlowError,
        "reads itself",
    ),
    "two of one name": (
        pattern(A, sw.patterns.event("A", of_type="b")),
        FlowError,
        "name them apart",
    ),
    "no at the beginning": (pattern(sw.patterns.no(A), B), FlowError, "has nothing before it"),
    "no in front of any_of": (
        pattern(A, sw.patterns.no(B), sw.patterns.all_of(B, C)),
        FlowError,
        "in any order",
    ),
    "no at the end of a number": (pattern(A, sw.patterns.no(B), within=5), FlowError, "use a time"),
    "too short": (pattern(A, B, C, within=2), FlowError, "it can never match"),
    "different values of a key": (
        lambda: (
            rows().key_by("kind").pattern(sw.patterns.any_of(2, LOW, distinct="kind"), within="1s")
        ),
        FlowError,
        "rows of one key have one 'kind': it can never match",
    ),
    "more different values than types": (
        pattern(sw.patterns.any_of(3, A, B, distinct="kind")),
        FlowError,
        "its events are of 2 types: it can never match; ask for 2 or fewer",
    ),
    "more different values than truth has": (
        lambda: (
            rows()
            .with_columns(odd=sw.col("v") > 1)
            .pattern(sw.patterns.any_of(4, LOW, distinct="odd"), within="1s")
        ),
        FlowError,
        "'odd' is true, false or null: it can never match; ask for 3 or fewer",
    ),
    "matches without windows": (pattern(A, matches=1), SettingError, "the pattern has none"),
    "no such word": (
        pattern(A, selection="frist"),
        SettingError,
        "selection='frist' must be 'first'",
    ),
    "next of any": (pattern(sw.patterns.all_of(A, B), skip="next"), FlowError, "leave skip='any'"),
    "cumulative repetition": (
        pattern(sw.patterns.repeat(A, 2), selection="cumulative"),
        FlowError,
        "write the event once",
    ),
    "an id that is a float": (pattern(A, id="x"), TypeMismatch, "id column 'x' is double"),
    "shedding without windows": (
        pattern(A, shed=sw.shedding.espice("1s")),
        SettingError,
        "has none",
    ),
    "shedding by a word": (
        pattern(A, window=sw.tumbling("1s"), within=None, shed="espice"),
        SettingError,
        "is not a way of shedding",
    ),
    "a feature in a word": (shedding("v"), TypeMismatch, "feature='v' is not an expression over"),
    "a feature of no column": (shedding(sw.col("zz") > 1), ColumnError, "no column 'zz'"),
    "a feature of an earlier event": (shedding(A["v"] > 1), ColumnError, "no column 'A.v'"),
    "a feature with too many values": (
        shedding(sw.col("x")),
        TypeMismatch,
        'feature col("x") is double, and events are told apart by few different values',
    ),
    "a feature of nothing": (shedding(sw.lit(3)), FlowError, "reads no column"),
    "too many alternatives": (
        pattern(*[sw.patterns.either(sw.patterns.seq(A, B), C)] * 7),
        FlowError,
        "make 128 alternatives",
    ),
    "more than there are": (
        lambda: sw.patterns.any_of(3, A, B),
        SettingError,
        "of 2 events can never be",
    ),
    "a type beyond 64 bits": (
        pattern(sw.patterns.event("far", of_type=2**70)),
        TypeMismatch,
        "can never be in column 'kind', which is string",
    ),
    "a whole number beyond its column": (
        pattern(sw.patterns.event("far", of_type=[1, 2**64]), type="v"),
        TypeMismatch,
        "can never be in column 'v', which is int64",
    ),
    "half a character": (
        pattern(sw.patterns.event("odd", of_type="\ud800")),
        TypeMismatch,
        "can never be",
    ),
    "a list of lists": (
        lambda: sw.patterns.event("A", of_type=[[1]]),
        FlowError,
        "give one value, or a",
    ),
    "a window of too many": (lambda: sw.patterns.count_window(2**63), SettingError, MOST),
    "windows too far apart": (lambda: sw.patterns.count_window(9, every=2**63), SettingError, MOST),
    "a window opened for too many": (
        lambda: sw.patterns.opened_by(A, events=2**63),
        SettingError,
        MOST,
    ),
    "within too many": (pattern(A, within=2**63), SettingError, f"within={2**63} {MOST}"),
    "too many matches": (
        pattern(A, window=sw.tumbling("1s"), within=None, matches=2**70),
        SettingError,
        f"matches={2**70} {MOST}",
    ),
    "too many in any order": (
        lambda: sw.patterns.any_of(2**63, A, distinct="v"),
        SettingError,
        MOST,
    ),
    "too often": (lambda: sw.patterns.repeat(A, 2**63), SettingError, MOST),
    "too many lists": (
        lambda: sw.patterns.repeat(A, 100_000),
        SettingError,
        "be 65,536 at most, since",
    ),
    "too many lists, or more": (
        lambda: sw.patterns.repeat(A, at_least=100_000),
        SettingError,
        "at_least=100000 must be 65,536 at most",
    ),
    "too many replicas": (
        lambda: rows().key_by("kind").pattern(sw.patterns.seq(LOW), within="1s", replicas=2**63),
        SettingError,
        "must be 128 at most",
    ),
    "a repeated sequence": (
        lambda: sw.patterns.repeat(sw.patterns.seq(A), 2),
        FlowError,
        "repeat takes an event",
    ),  # type: ignore[call-overload]
    "nothing": (sw.patterns.seq, FlowError, "seq() is empty"),
    "no part": (lambda: sw.patterns.seq(A, sw.col("v")), FlowError, "takes parts of a pattern"),  # type: ignore[arg-type]
    "a name of two words": (lambda: sw.patterns.event("a b"), FlowError, "one word"),
    "windows of two lengths": (
        lambda: sw.patterns.opened_by(A, within="1s", events=5),
        SettingError,
        "one length",
    ),
    "a name that is taken": (
        lambda: (
            rows()
            .with_columns(A_v=sw.col("v"))
            .key_by("A_v")
            .pattern(sw.patterns.seq(A), type="kind", within="1s")
        ),
        DuplicateName,
        "give the event another name",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_when_it_is_built_with_the_rule(what: str) -> None:
    build, kind, said = REFUSED[what]
    with pytest.raises(kind) as refused:
        build()
    assert said in str(refused.value)
