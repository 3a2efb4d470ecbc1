"""Who a job that stands still waits for: each cause by name, and no word of one that is quiet."""

from __future__ import annotations

import pytest

from slackwater.runtime.measure.report import ChannelReport, Standstill
from slackwater.runtime.measure.standstill import standing, standstills
from tests.support.reports import stage

S = 10**9
LIMIT_NS = 30 * S
STILL, MOVES = 42 * S, S

# talks ──▶ both ──▶ out
# silent ──▶ (gate)
EDGES = [("talks", "both"), ("silent", "both"), ("both", "out")]
KINDS = {"talks": "source", "silent": "source", "both": "merge", "out": "sink"}


def look(
    edges: list[tuple[str, str]] = EDGES,
    kinds: dict[str, str] = KINDS,
    waits: dict[str, list[str]] | None = None,
    **still_ns: int | None,
) -> list[Standstill]:
    """What stands still; stages not named have given nothing for 42 s."""
    stages = [stage(name, kind, 10, 10) for name, kind in kinds.items()]
    for one in stages:
        one.still_ns = still_ns.get(one.name, STILL)
        one.waiting_for = (waits or {}).get(one.name, [])
    channels = [ChannelReport(f"{a}→{b}", a, b) for a, b in edges]
    return standstills(stages, channels, elapsed_s=100, still_ns=LIMIT_NS)


def test_a_silent_source_is_named_with_the_gate_that_waits_for_it_and_since_when() -> None:
    (one,) = look(waits={"both": ["silent"]}, talks=MOVES)
    assert (one.sinks, one.waits_for) == (["out"], ["silent"])
    assert (one.still_s, one.since_s) == (42, 58)
    assert one.why == "'both' waits for source 'silent', which gives nothing"
    assert "`idle=`" in one.do
    assert "slack" in one.do
    assert standing(one).startswith(
        "stands still: sink 'out' has had nothing for 42.0 s (since 58.0 s): 'both' waits for"
    )


@pytest.mark.parametrize("moving", ["out", "both"])
def test_what_moves_is_not_told(moving: str) -> None:
    """Not even a sink that gets nothing: a filter or an open window is before it."""
    assert look(waits={"both": ["silent"]}, talks=MOVES, **{moving: MOVES}) == []


def test_below_the_limit_and_behind_the_end_nothing_is_told() -> None:
    assert look(out=LIMIT_NS - 1) == []
    assert look(talks=None, silent=None) == []


def test_a_chain_of_gates_is_followed_to_the_source_that_the_first_of_them_waits_for() -> None:
    edges = [("a", "m"), ("b", "m"), ("m", "j"), ("c", "j"), ("j", "out")]
    kinds = dict.fromkeys("abc", "source") | {"m": "merge", "j": "join", "out": "sink"}
    (one,) = look(edges, kinds, waits={"j": ["m"], "m": ["b"]}, a=MOVES, c=MOVES)
    assert one.waits_for == ["b"]
    assert one.why.startswith("'m' waits for source 'b'")


def test_a_source_that_sends_and_promises_nothing_is_told_apart_with_its_writer() -> None:
    waits = {"both": ["talks"], "talks": ["bus 7"]}
    (one,) = look(waits=waits, talks=MOVES, silent=MOVES)
    assert one.waits_for == ["talks"]
    assert "(its writer bus 7), which sends rows and promises nothing new" in one.why
    assert "`disorder=`" in one.do


def test_an_input_that_gives_rows_again_is_no_silent_one() -> None:
    stages = [
        stage("feed", "source", 10, 10, to_pass_over=300, still_ns=STILL),
        stage("out", "sink", 10, 10, still_ns=STILL),
    ]
    channels = [ChannelReport("feed→out", "feed", "out")]
    (still,) = standstills(stages, channels, elapsed_s=100, still_ns=LIMIT_NS)
    assert still.why == ("source 'feed', which passes over rows that it had before (300 to come)")
    assert still.do.startswith("wait: new rows follow")


def test_a_sink_that_does_not_return_a_source_held_as_early_and_a_full_stage() -> None:
    stages = [stage("s", "source", 10, 10), stage("out", "sink", 10, 10)]
    channels = [ChannelReport("s→out", "s", "out")]
    for one in stages:
        one.still_ns = STILL

    def kind_of() -> str:
        (one,) = standstills(stages, channels, elapsed_s=100, still_ns=LIMIT_NS)
        return f"{one.waits_for[0]}: {one.do}"

    assert kind_of().startswith("s: see whether its input is alive")
    stages[0].in_flight = stages[0].early = 3
    assert kind_of().startswith("s: raise `ahead=`")
    stages[0].still_ns, stages[1].in_flight = MOVES, 5
    assert kind_of().startswith("out: see what the stages after it")
    stages[1].is_stuck = True
    assert kind_of().startswith("out: see `slackwater logs`")


def test_a_paced_source_in_a_gap_of_its_history_is_not_told_nor_who_waits_for_it() -> None:
    stages = [stage(name, kind, 10, 10) for name, kind in KINDS.items()]
    channels = [ChannelReport(f"{a}→{b}", a, b) for a, b in EDGES]
    talks, silent, both, _ = stages
    both.waiting_for = ["talks", "silent"]
    for one in stages:
        one.still_ns = STILL
    talks.due_in_ns = 5 * S
    (told,) = standstills(stages, channels, elapsed_s=100, still_ns=LIMIT_NS)
    assert told.waits_for == ["silent"]
    silent.due_in_ns = 7 * S
    assert standstills(stages, channels, elapsed_s=100, still_ns=LIMIT_NS) == []
    talks.is_stuck = True  # that is another matter
    (told,) = standstills(stages, channels, elapsed_s=100, still_ns=LIMIT_NS)
    assert told.waits_for == ["talks"]


@pytest.mark.parametrize("waits", [["talks", "silent"], ["silent"]])
def test_a_source_in_the_slot_of_a_function_that_hangs_is_not_blamed(waits: list[str]) -> None:
    stages = [stage(name, kind, 10, 10) for name, kind in KINDS.items()]
    channels = [ChannelReport(f"{a}→{b}", a, b) for a, b in EDGES]
    talks, silent, both, _ = stages
    for one in stages:
        one.still_ns, one.slot = STILL, "b"
    talks.slot = silent.slot = "a"
    talks.is_stuck, both.waiting_for = True, waits
    (told,) = standstills(stages, channels, elapsed_s=100, still_ns=LIMIT_NS)
    assert (told.waits_for, "idle=" in told.do) == (["talks"], False)
    assert told.why == "'both' waits for stage 'talks', whose function or sink does not return"


def test_sinks_that_wait_for_the_same_are_told_of_together() -> None:
    edges = [("s", "x"), ("s", "y"), ("t", "z")]
    kinds = {"s": "source", "t": "source"} | dict.fromkeys("xyz", "sink")
    together, other = look(edges, kinds)
    assert (together.sinks, together.waits_for) == (["x", "y"], ["s"])
    assert (other.sinks, other.waits_for) == (["z"], ["t"])
