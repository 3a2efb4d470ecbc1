"""The example of limits of one's own."""

from __future__ import annotations

from examples import own_limits


def test_a_gate_with_tight_limits_holds_what_they_say_and_loses_nothing() -> None:
    without, out = own_limits.held()
    most, same = own_limits.held(own_limits.TIGHT)
    assert out == same == 10_000
    tight = own_limits.TIGHT
    assert most <= tight.gate_rows + tight.credit_rows < without
