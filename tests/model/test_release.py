"""A rule says when a gate lets rows go; what it cannot mean it cannot be."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.tuning import GateTuning
from slackwater.runtime.model import BY_DEADLINE, LONGEST_NS, ON_ARRIVAL, READY_ONLY, ReleaseRule

MS = 1_000_000
RULES = {
    "ready-only": READY_ONLY,
    "on arrival": ON_ARRIVAL,
    "slack 500 ms": ReleaseRule.slack(500 * MS),
    "slack 0 ns": ReleaseRule.slack(0),
    "hold 20.0 ms": ReleaseRule.hold(20 * MS),
    "slack 500 ms, hold 20.0 ms": ReleaseRule.slack(500 * MS, hold_ns=20 * MS),
    "slack 500 ms in full": ReleaseRule.in_full(500 * MS),
    "on arrival, hold 20.0 ms": ReleaseRule("on arrival", hold_ns=20 * MS),
}


@pytest.mark.parametrize("text", RULES)
def test_a_rule_has_a_text_and_is_the_same_after_it_has_travelled(text: str) -> None:
    rule = RULES[text]
    assert rule.text == text
    assert ReleaseRule.from_json(json.loads(json.dumps(rule.to_json()))) == rule
    assert pickle.loads(pickle.dumps(rule)) == rule  # noqa: S301 - our own


def test_by_the_deadline_is_no_rule_but_has_a_text() -> None:
    assert BY_DEADLINE.text == "slack by the deadline"
    assert pickle.loads(pickle.dumps(BY_DEADLINE)) is BY_DEADLINE  # noqa: S301 - our own


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (("slack", None), "slack_ns=None must be a whole number"),
        (("in full", None), "slack_ns=None must be a whole number"),
        (("slack", -1), "slack_ns=-1 must be"),
        (("slack", 0.5), "slack_ns=0.5 must be"),
        (("slack", True), "slack_ns=True must be"),
        (("slack", LONGEST_NS + 1), "from 0 to 2"),
        (("ready-only", 5), "slack_ns=5 must be None: a gate that is ready-only has no slack"),
        (("on arrival", 0), "slack_ns=0 must be None"),
        (("ready-only", None, -1), "hold_ns=-1 must be"),
        (("soon", None), "mode='soon' must be one of 'ready-only', 'on arrival', 'slack'"),
    ],
)
def test_what_a_rule_cannot_mean_it_cannot_be(settings: tuple[Any, ...], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        ReleaseRule(*settings)
    plain = dict(zip(("mode", "slack_ns", "hold_ns"), settings, strict=False))
    with pytest.raises(ValueError, match=says):
        ReleaseRule.from_json(plain)


def test_a_numpy_length_becomes_an_int() -> None:
    rule = ReleaseRule.slack(np.int64(7), hold_ns=np.int64(8))  # type: ignore[arg-type]
    assert (type(rule.slack_ns), type(rule.hold_ns)) == (int, int)


@pytest.mark.parametrize(
    ("slack_ns", "hold_ns", "rule"),
    [
        (None, None, READY_ONLY),
        (None, 5, ReleaseRule.hold(5)),
        (-1, None, ON_ARRIVAL),
        (7, 5, ReleaseRule.slack(7, hold_ns=5)),
    ],
)
def test_what_was_kept_before_there_were_rules_can_still_be_read(
    slack_ns: int | None, hold_ns: int | None, rule: ReleaseRule
) -> None:
    old = {"stage": "gate", "slack_ns": slack_ns, "hold_ns": hold_ns}
    assert StageSample.from_json({**old, "second": 3}).rule == rule
    gate = GateTuning.from_json({**old, "by": "model", "late": 4})
    assert gate == GateTuning("gate", rule, by="model", late=4)
    # Who reads our reports finds the two lengths where they always were.
    plain = gate.to_json()
    assert (plain["slack_ns"], plain["hold_ns"]) == (slack_ns, hold_ns)
