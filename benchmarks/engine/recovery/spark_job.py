"""The command that `recovery-spark` runs, and runs again: a job that reads a Spark stream.

    python -m benchmarks.engine.recovery.spark_job FOLDER

It reads JSON files that appear in FOLDER/files, until it gets SIGTERM.
"""

from __future__ import annotations

import sys
from pathlib import Path

import slackwater as sw
from benchmarks.engine.recovery.flow import TableOutput

CHECKPOINT = "500ms"


def main(folder: Path) -> None:
    """Run the job until it is stopped or fails."""
    with sw.Cluster.local(nodes=1, cores=2) as cluster:
        session = cluster.spark(executors=1, memory="512m", start_limit="280s").session
        reader = session.readStream.schema("t long, value long").option("maxFilesPerTrigger", 20)
        frame = reader.json(str(folder / "files"))
        stream = sw.spark_stream(frame, order_by="t", offsets=folder / "offsets")
        flow = sw.Dataflow("spark")
        rows = flow.source("rows", stream, event_time="t", time_unit="ms")
        doubled = rows.with_columns(double=sw.col("value") * 2)
        doubled.sink("out", TableOutput(str(folder / "rows.db")))
        job = cluster.submit(
            flow, checkpoint=CHECKPOINT, checkpoint_folder=folder / "checkpoints", detach=False
        )
        print("runs", *job.workers().values(), flush=True)
        job.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
