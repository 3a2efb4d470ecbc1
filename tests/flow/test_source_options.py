"""Options of a source that are of another kind are refused at its line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slackwater as sw


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"promise": 5},
            r"'rows'.*promise=5 is not an expression .* promise=sw.col",
        ),
        ({"promise": {"heard": 1}}, "promise=.* is not an expression"),
        ({"start": np.array([1, 2])}, "start=array.* is not a time; write start='2024"),
        ({"out_of_order": np.array([1, 2])}, r"out_of_order=.*"),
    ],
)
def test_a_value_of_another_kind_is_refused(options: dict[str, Any], said: str) -> None:
    flow = sw.Dataflow("source")
    rows = sw.table({"t": [1], "heard": [2]})
    with pytest.raises(sw.SlackwaterError, match=said):
        flow.source("rows", rows, event_time="t", time_unit="s", speed=1.0, **options)
