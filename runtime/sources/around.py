"""An input around another, which passes on what that says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from slackwater.runtime.sources.spec import Input, InputTraits, Partition, traits_of

__all__ = ["InputAround"]


class InputAround:
    """Input around another one, `inner`: its words, columns, traits and partitions.

    A subclass opens it, and says in `traits` what differs.
    """

    inner: Input

    @property
    def traits(self) -> InputTraits:
        """Traits of the inner input, without those that are of how it is read."""
        return traits_of(self.inner).passed_on()

    @property
    def partitions(self) -> Callable[[], Iterable[Partition]] | None:
        """Lists the partitions of the inner input; None if it has one."""
        listed: Callable[[], Iterable[Partition]] | None = getattr(self.inner, "partitions", None)
        return listed

    def describe(self) -> str:
        """Return the inner input's description."""
        return self.inner.describe()

    def schema(self) -> pa.Schema:
        """Return the inner input's columns."""
        return self.inner.schema()
