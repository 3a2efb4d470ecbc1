"""A stream under its keys, on the way to the aggregate or join that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.errors import TypeMismatch
from runtime.flow.slack import AS_FLOW, Slack
from runtime.flow.steps import Aggregate, Keep, Share, Window
from runtime.model import Duration

if TYPE_CHECKING:
    from runtime.flow.expressions import Expr
    from runtime.flow.stream import Stream


@dataclass(frozen=True)
class KeyedStream:
    """A stream and the columns that tell its rows apart."""

    stream: Stream
    keys: tuple[str, ...]

    def aggregate(
        self,
        columns: Mapping[str, Aggregate] | None = None,
        *,
        window: Window,
        slack: Slack = AS_FLOW,
        replicas: int = 1,
        share: Share = "keys",
        name: str | None = None,
        **named: Aggregate,
    ) -> Stream:
        """Aggregate by these keys; see Stream.aggregate."""
        return self.stream.aggregate(
            columns,
            window=window,
            by=self.keys,
            slack=slack,
            replicas=replicas,
            share=share,
            name=name,
            **named,
        )

    def join(  # noqa: PLR0913 - as Stream.join
        self,
        other: KeyedStream,
        *,
        within: Duration,
        where: Expr | None = None,
        suffix: str = "_right",
        slack: Slack = AS_FLOW,
        keep: Keep | None = None,
        replicas: int = 1,
        share: Share = "keys",
        name: str | None = None,
    ) -> Stream:
        """Join on these keys and the other's, pairwise; see Stream.join."""
        if not isinstance(other, KeyedStream):
            raise TypeMismatch(
                f"join on {self.stream.name!r} after key_by takes a stream after key_by, "
                f"not {other!r}; write other.key_by(...), or join before key_by with on="
            )
        return self.stream.join(
            other.stream,
            within=within,
            left_on=self.keys,
            right_on=other.keys,
            where=where,
            suffix=suffix,
            slack=slack,
            keep=keep,
            replicas=replicas,
            share=share,
            name=name,
        )
