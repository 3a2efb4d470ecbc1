"""Import Arrow's functions before a slot's job begins, if its stages need them.

The import takes 30 to 60 ms, which would otherwise delay an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from slackwater.actors.slot.user_output import runs_users_code
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.plan.plan import Stage

__all__ = ["import_arrow_functions"]


def import_arrow_functions(stages: Iterable[Stage]) -> None:
    """Import Arrow's functions for stages with text, or with users' code.

    Results of users' code may need a cast.

    Expressions that cast, and JSON lines, import them during preparation. An input of ours is cast
    when its first block is read, before the start.
    """
    if any(runs_users_code(stage) or _has_text(stage) for stage in stages):
        arrow_functions()


def _has_text(stage: Stage) -> bool:
    return any(pa.types.is_string(kind) for schema in _schemas(stage) for kind in schema.types)


def _schemas(stage: Stage) -> Iterator[pa.Schema]:
    yield from (step.schema for step in (stage.step, *stage.chain))
    yield from (channel.schema for channel in (*stage.inputs, *stage.outputs))
