"""First arrivals of inputs that are opened once before the run."""

from __future__ import annotations

import pyarrow as pa

from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.sources.blocks import BlockReader
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["first_arrival_ns"]


def first_arrival_ns(source: str, spec: SourceSpec, schema: pa.Schema) -> int | None:
    """Return the arrival of a source's first row; None if none can be read.

    The run reads the same rows, and reports an error of theirs.

    Args:
        source: its name.
        spec: its settings; its input is history, and replayed.
        schema: inside schema of its input.
    """
    order = spec.reorder.begin()
    blocks = BlockReader(source, spec, schema, order=order, rank=0, needed=frozenset())
    try:
        return blocks.first_arrival_ns()
    except SlackwaterError:
        return None
    finally:
        blocks.close()
