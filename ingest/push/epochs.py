"""Which pushed rows a source may see, and in which order: all of an epoch, once, or none.

Spark runs the tasks of a micro-batch (an epoch) as often as it takes: a task that failed runs
again, perhaps with its rows in another order, and an epoch may run again. So what arrives is
kept by attempt, and becomes visible when the epoch is committed with a manifest of which
attempt of each partition succeeded. What the others sent is dropped.

    arrives    e7 p0 a1 #0    e7 p0 a2 #0, #1    e7 p1 a3 #0
    manifest   e7: p0 by a2, 2 frames; p1 by a3, 1 frame
    visible    p0 a2 #0, #1, p1 a3 #0            a1 had failed
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from slackwater.runtime.errors import FrameError, IngestError


@dataclass(frozen=True, slots=True)
class Finished:
    """What a task attempt that succeeded says it sent."""

    partition: int
    attempt: int
    frames: int
    rows: int


class Epochs:
    """Rows that arrived and wait for their epoch's commit. Does no I/O.

    Args:
        max_bytes: at most this much may wait.
    """

    def __init__(self, *, max_bytes: int) -> None:
        self.last_committed = -1
        self.repeated = 0
        """Frames so far that came behind their epoch's commit, and were dropped."""
        self.bytes_held = 0
        self._max_bytes = max_bytes
        # {epoch: {(partition, attempt): rows of each frame}}
        self._waiting: dict[int, dict[tuple[int, int], list[pa.RecordBatch]]] = {}

    def add(
        self, epoch: int, partition: int, attempt: int, sequence: int, batch: pa.RecordBatch
    ) -> None:
        """Keep rows until their epoch is committed; drop them if it is committed already.

        Raises:
            FrameError: this attempt has sent that frame before, or has left one out.
            IngestError: more is waiting than may be.
        """
        if epoch <= self.last_committed:
            self.repeated += 1
            return
        tasks = self._waiting.setdefault(epoch, defaultdict(list))
        frames = tasks[partition, attempt]
        if sequence != len(frames):  # one connection, so in turn
            raise FrameError(
                f"micro-batch {epoch}, partition {partition}, attempt {attempt}: frame {sequence} "
                f"came where frame {len(frames)} was due; none of its rows are taken"
            )
        if self.bytes_held + batch.nbytes > self._max_bytes:
            raise IngestError(
                f"micro-batch {epoch} has more than the {self._max_bytes} bytes that a source "
                "keeps until it is complete; make micro-batches smaller (maxFilesPerTrigger, "
                "maxOffsetsPerTrigger), or raise max_epoch_bytes"
            )
        frames.append(batch)
        self.bytes_held += batch.nbytes

    def commit(self, epoch: int, manifest: Sequence[Finished]) -> list[pa.RecordBatch]:
        """Return the rows of an epoch, by partition and sequence; none if it was here before.

        Raises:
            FrameError: the manifest cannot be true.
            IngestError: what a task said it sent has not all arrived.
        """
        if epoch <= self.last_committed:
            return []
        if len({task.partition for task in manifest}) < len(manifest):
            raise FrameError(f"the manifest of micro-batch {epoch} names a partition twice")
        tasks = self._waiting.get(epoch, {})
        visible: list[pa.RecordBatch] = []
        for task in sorted(manifest, key=lambda task: task.partition):
            batches = tasks.get((task.partition, task.attempt), [])
            rows = sum(batch.num_rows for batch in batches)
            if len(batches) != task.frames or rows != task.rows:
                raise IngestError(
                    f"micro-batch {epoch}, partition {task.partition}: {rows} of {task.rows} rows "
                    f"arrived ({len(batches)} of {task.frames} frames); this is a defect, not "
                    "yours: please report it"
                )
            visible += batches
        self.last_committed = epoch
        self._waiting = {later: held for later, held in self._waiting.items() if later > epoch}
        self.bytes_held = sum(
            batch.nbytes
            for held in self._waiting.values()
            for frames in held.values()
            for batch in frames
        )
        return visible
