"""What the tests of channels share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.actors.wire.links import Link


@pytest.fixture(params=[False, True], ids=["between hosts", "on one host"])
def link(request: pytest.FixtureRequest) -> Iterator[Link]:
    """Channels over TCP with CURVE, and again over Unix sockets: they behave alike."""
    made = Link(is_local=request.param)
    yield made
    made.close()
