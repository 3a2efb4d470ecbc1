"""Public names that changed: the old ones work for one release, and say what to write."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.model import GateRead

OLD = [("slackwater", "SinkSpec", sw.Output), ("slackwater.runtime.model", "Released", GateRead)]


@pytest.mark.parametrize(("module", "name", "now"), OLD)
def test_an_old_name_is_the_new_thing_with_a_warning(module: str, name: str, now: Any) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name} is {now.__name__} now; the old name goes"):
        assert getattr(importlib.import_module(module), name) is now


@pytest.mark.parametrize(("module", "name", "now"), OLD)
def test_what_never_was_is_no_old_name(module: str, name: str, now: Any) -> None:
    del name, now
    with pytest.raises(AttributeError, match="no attribute 'SinkSpecs'"):
        _ = importlib.import_module(module).SinkSpecs
