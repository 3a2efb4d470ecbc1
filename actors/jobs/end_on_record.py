"""Whether the job that holds a lock is over, by the cluster's records.

Every slot is given this function, and few ever ask: what it needs is imported when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slackwater.actors.jobs.records import Records
    from slackwater.runtime.sinks.lock import Holder

__all__ = ["end_on_record"]


def end_on_record(holder: Holder, records: Records | None = None) -> bool:
    """Return whether the cluster knows that the job of a lock, with that very process, is over.

    A sink asks it (`actors/sinks/lock.py`); `make_actors` gives it to the slots.

    Args:
        holder: of the lock.
        records: None: those of the cluster that this process is in.
    """
    from slackwater.actors.jobs.records import Records as Kept  # noqa: PLC0415 (see above)

    try:
        record = (records or Kept()).read(holder.job)
    except Exception:  # whatever Ray's store finds wrong: then nobody knows
        return False
    if record is None or not record.has_ended:
        return False
    return holder.pid in {worker.pid for worker in record.workers.values()}
