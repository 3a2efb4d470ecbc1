"""Decide which pushed rows a source sees, in which order: whole epochs only, each once.

Spark runs the tasks of a micro-batch (an epoch) as often as needed: a failed task runs again,
perhaps with its rows in another order, and an epoch may run again. So arriving rows are kept by
attempt. They become visible when the epoch is committed, with a manifest of the attempt of each
partition that succeeded. Rows of other attempts are dropped.

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
    """Claim of a successful task attempt on what it sent."""

    partition: int
    attempt: int
    frames: int
    rows: int


class Epochs:
    """Keeps rows until their epoch is committed. Does no I/O.

    Args:
        max_bytes: most bytes that may wait.
        after: number of the last epoch that its rows were spooled of, -1 before the first. Then
            the next one must follow. None if rows are not spooled.
    """

    def __init__(self, *, max_bytes: int, after: int | None = None) -> None:
        self.last_committed = -1 if after is None else after
        self._has_no_gap = after is not None
        self.repeated = 0
        """Frames so far that came after their epoch's commit, and were dropped."""
        self.bytes_held = 0
        self._max_bytes = max_bytes
        # {epoch: {(partition, attempt): rows of each frame}}
        self._waiting: dict[int, dict[tuple[int, int], list[pa.RecordBatch]]] = {}

    def add(
        self, epoch: int, partition: int, attempt: int, sequence: int, batch: pa.RecordBatch
    ) -> None:
        """Keep rows until their epoch is committed; drop them if it already is.

        Raises:
            FrameError: the attempt repeats or omits a frame.
            IngestError: too many bytes wait.
        """
        if epoch <= self.last_committed:
            self.repeated += 1
            return
        tasks = self._waiting.setdefault(epoch, defaultdict(list))
        frames = tasks[partition, attempt]
        if sequence != len(frames):  # one connection, so in turn
            raise FrameError(
                f"micro-batch {epoch}, partition {partition}, attempt {attempt}: frame {sequence} "
                f"came where frame {len(frames)} was due; its rows are dropped"
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
        """Return an epoch's rows, by partition and sequence; none if already committed.

        Raises:
            FrameError: the manifest is impossible.
            IngestError: rows in the manifest have not arrived, or epochs are missing.
        """
        if epoch <= self.last_committed:
            return []
        if self._has_no_gap and epoch > self.last_committed + 1:
            raise IngestError(
                f"micro-batch {epoch} came where {self.last_committed + 1} was due: Spark counts "
                "those between as done, and their rows are not in the spool of this job; give the "
                "checkpoint folder with which spark_stream(offsets=) was used before, or begin "
                "with new folders for both"
            )
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
