"""Each function of the front door refuses a call that does not fit, at its line."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import slackwater as sw

MODULES = (sw, sw.clocks, sw.closing, sw.connectors, sw.order, sw.patterns, sw.shedding)
METHODS = (sw.Dataflow.merge, sw.Dataflow.with_deadline)
FUNCTIONS: list[Callable[..., Any]] = [
    *METHODS,
    *(
        function
        for module in MODULES
        for name in module.__all__
        if isinstance(function := getattr(module, name), FunctionType)
    ),
]


def _required(function: Callable[..., Any]) -> int:
    """Return how many arguments have a place and no default."""
    return sum(
        one.default is Parameter.empty
        and one.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        for one in signature(function).parameters.values()
    )


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__qualname__)
def test_an_option_that_is_not_there_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(sw.SlackwaterError, match="odd_option"):
        function(*[None] * _required(function), odd_option=1)


@pytest.mark.parametrize(
    "function",
    [function for function in FUNCTIONS if _required(function)],
    ids=lambda function: function.__qualname__,
)
def test_a_missing_argument_is_refused_with_all_of_them(function: Callable[..., Any]) -> None:
    with pytest.raises(sw.SlackwaterError, match=rf"{function.__name__}\(.*; it is "):
        function()


@pytest.mark.parametrize("word", [[], {}, np.array([1, 2]), np.array(["drop", "pass"]), 1, None])
@pytest.mark.parametrize(
    "call",
    [
        lambda word: sw.order.k_slack("1s", late=word),
        lambda word: sw.order.mp_k_slack(delay_from=word),
        lambda word: sw.order.by_sequence(restart=word),
        lambda word: sw.shedding.espice("1s", drops=[word]),
        lambda word: sw.order.error_within(0.1, of=word),
        lambda word: sw.clocks.clock_bound("off", most="1ms", unit=word),
        lambda word: sw.clocks.clock_columns("off", unit=word),
    ],
)
def test_a_word_that_is_none_of_a_few_is_refused(
    call: Callable[[object], object], word: object
) -> None:
    with pytest.raises(sw.SlackwaterError, match=" must be '"):
        call(word)


def test_options_that_are_passed_on_are_refused_by_their_names_too() -> None:
    with (
        sw.Simulation(nodes=1) as nodes,
        pytest.raises(sw.SlackwaterError, match=r"submit\(\) has no option 'limit'.*'limits'"),
    ):
        nodes.submit(sw.Dataflow("any"), limit=sw.Limits())  # type: ignore[call-arg]
