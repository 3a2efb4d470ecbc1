"""What a user types, run in this process, and a file with a flow to type it for."""

from __future__ import annotations

from typer.testing import CliRunner

from slackwater.cli.main import app

FLOW = """
import numpy as np, pyarrow as pa
import slackwater as sw
ts = pa.array(np.arange(2000) * 1_000_000, pa.timestamp("ns"))
flow = sw.Dataflow("typed", deadline="1s")
rows = flow.source("a", sw.table(pa.table({"ts": ts, "n": np.arange(2000)})), event_time="ts")
rows.merge(name="gate").sink("out", sw.collect_sink())
"""


def said(*words: str, code: int = 0) -> str:
    """Run `slackwater WORDS`; return what it prints, having ended with this code."""
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == code, done.output
    return done.output
