"""Arrow's functions, imported before a slot's job begins where they will be needed in it.

They take 30 to 60 ms, which would else be in an event's latency.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from slackwater.actors.slot.user_output import runs_users_code
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.plan.plan import Stage

__all__ = ["import_arrow_functions"]


def import_arrow_functions(stages: Iterable[Stage]) -> None:
    """Import them for stages with text, or with what a user's code returns, which may need a cast.

    An expression that casts, and lines of JSON, import them as they are made ready. An input of
    ours is cast as its first block is read, which is before the start.
    """
    if any(runs_users_code(stage) or _has_text(stage) for stage in stages):
        arrow_functions()


def _has_text(stage: Stage) -> bool:
    return any(pa.types.is_string(kind) for schema in _schemas(stage) for kind in schema.types)


def _schemas(stage: Stage) -> Iterator[pa.Schema]:
    yield from (step.schema for step in (stage.step, *stage.chain))
    yield from (channel.schema for channel in (*stage.inputs, *stage.outputs))
