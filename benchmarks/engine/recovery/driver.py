"""The driver that `recovery` kills: it submits a detached job, says its id, and stays.

python -m benchmarks.engine.recovery.driver '[inputs, folder of the trial, fault]'
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import slackwater as sw
from benchmarks.engine.recovery.faults import FAULTS
from benchmarks.engine.recovery.flow import PLACES
from benchmarks.engine.recovery.trial import submitted


def main(inputs: str, own: str, fault: str) -> None:
    """Submit the job, and wait for the end of this process."""
    with sw.Cluster.connect() as cluster:
        job = submitted(cluster, Path(inputs), Path(own), FAULTS[fault], PLACES)
        print(job.id, flush=True)
        signal.pause()


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
