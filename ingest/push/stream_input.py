"""Unbounded Spark frames as a source's slot has them: a place to listen, and keys.

Nothing here knows Spark: a slot that reads a stream starts a second sooner for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa
import ray

from slackwater.ingest.push.reader import PushReader
from slackwater.ingest.push.wire import Keys


@dataclass(frozen=True, eq=False)
class StreamInput:
    """An unbounded Spark frame. `spark_stream` makes it.

    Pickles; whoever holds it may read the stream, so it travels through Ray only.

    Attributes:
        feeder: endpoint of the thread in Spark's driver that feeds it.
        keys: the reader's.
        peer: public key of feeder and senders.
        host: address for the reader to listen on; None: its node's.
        ends_with_driver: the stream ends with the process that runs Spark's driver.
    """

    ends_with_driver: ClassVar[bool] = True
    reads_inline: ClassVar[bool] = True
    feeder: str
    keys: Keys = field(repr=False)
    peer: bytes = field(repr=False)
    columns: pa.Schema
    host: str | None
    max_epoch_bytes: int

    def describe(self) -> str:
        """Return what it is."""
        return f"spark stream ({len(self.columns)} columns)"

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return self.columns

    def open(self) -> PushReader:
        """Listen for rows, and have the query started.

        Raises:
            IngestError: the driver does not answer.
        """
        return PushReader(
            self.feeder,
            host=self.host or own_address(),
            keys=self.keys,
            peer=self.peer,
            schema=self.columns,
            max_epoch_bytes=self.max_epoch_bytes,
        )


def own_address() -> str:
    """Return the address that Ray has for this node; the loopback's where there is no Ray."""
    if not ray.is_initialized():
        return "127.0.0.1"
    return str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]
