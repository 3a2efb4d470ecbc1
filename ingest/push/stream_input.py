"""Describe an unbounded Spark frame for a source's slot: where to listen, and keys.

Nothing here imports Spark, so a slot that reads a stream starts a second sooner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa
import ray

from slackwater.ingest.push.reader import PushReader
from slackwater.ingest.push.wire import Keys
from slackwater.runtime.errors import IngestError
from slackwater.runtime.sources.spec import Replay


@dataclass(frozen=True, eq=False)
class StreamInput:
    """An unbounded Spark frame. `spark_stream` makes it.

    Pickles; its holder may read the stream, so it travels through Ray only.

    Attributes:
        feeder: endpoint of its feeder in Spark's driver.
        keys: keys of the reader.
        peer: public key of feeder and senders.
        host: address for the reader to listen on; None if it is its node's.
        keeps_offsets: whether Spark goes on after the micro-batches of earlier runs.
        ends_with_driver: the stream ends with the process that runs Spark's driver.
    """

    ends_with_driver: ClassVar[bool] = True
    reads_inline: ClassVar[bool] = True
    blocks_stay: ClassVar[bool] = True
    replay: ClassVar[Replay] = "none"
    skips_spooled: ClassVar[bool] = True
    feeder: str
    keys: Keys = field(repr=False)
    peer: bytes = field(repr=False)
    columns: pa.Schema
    host: str | None
    max_epoch_bytes: int
    keeps_offsets: bool = False

    def describe(self) -> str:  # noqa: D102
        return f"spark stream ({len(self.columns)} columns)"

    def schema(self) -> pa.Schema:  # noqa: D102
        return self.columns

    def open(self, name: str = "", at: bytes | None = None) -> PushReader:
        """Listen for rows, and let the query start.

        Args:
            name: empty: it has one partition.
            at: position of the last micro-batch that was spooled; None if rows are not spooled.

        Raises:
            IngestError: the driver does not answer, or offsets are kept and rows are not spooled.
        """
        del name
        if self.keeps_offsets and at is None:
            raise IngestError(
                "spark_stream(offsets=) is for jobs with checkpoints, and this one has none: Spark "
                "would go on after micro-batches whose rows no sink had published when a job died; "
                "write submit(flow, checkpoint='1s'), or omit offsets"
            )
        return PushReader(
            self.feeder,
            host=self.host or own_address(),
            keys=self.keys,
            peer=self.peer,
            schema=self.columns,
            max_epoch_bytes=self.max_epoch_bytes,
            after=at,
        )


def own_address() -> str:
    """Return this node's address in Ray; the loopback address without Ray."""
    if not ray.is_initialized():
        return "127.0.0.1"
    return str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]
