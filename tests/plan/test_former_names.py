"""Former names of stages and channels follow from those of steps."""

from __future__ import annotations

from slackwater.runtime.plan.former_names import FormerNames
from tests.support.any_flow import any_flow


def test_parts_and_channels_have_the_names_of_their_steps() -> None:
    plan = next(
        plan
        for plan in map(any_flow, range(99))
        if any(stage.name == "pairs.1" for stage in plan.stages)
    )
    then = FormerNames.of(plan, {"both": "pairs", "buses": "s1"}).by_name
    assert then["pairs.1"] == "both.1"
    assert then["s1"] == "buses"
    into = {c.name: then[c.name] for c in plan.channels if c.target == "pairs.1"}
    assert into
    assert all(
        old == now.replace("s1", "buses").replace("pairs", "both") for now, old in into.items()
    )
    assert all(now not in then or "s1" in now or "pairs" in now for now in plan.slots)


def test_values_by_former_names_are_given_by_those_of_now() -> None:
    names = FormerNames({"trips": "rides"})
    assert names.by_name_now({"rides": 1, "out": 2}) == {"trips": 1, "out": 2}
    assert [names.then(name) for name in ("trips", "out")] == ["rides", "out"]
