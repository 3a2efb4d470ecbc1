"""Check by the cluster's records whether a lock's job is over.

Every slot gets this function, and few call it: so it imports its needs when called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slackwater.actors.jobs.records import Records
    from slackwater.runtime.sinks.lock import Holder

__all__ = ["end_on_record"]


def end_on_record(holder: Holder, records: Records | None = None) -> bool:
    """Return whether the cluster knows that the very process of a lock's job is over.

    A sink calls it (`actors/sinks/lock.py`); `make_actors` passes it to the slots.

    Args:
        holder: holder of the lock.
        records: records of jobs; those of this process's cluster if None.
    """
    from slackwater.actors.jobs.records import Records  # noqa: PLC0415 (see above)

    try:
        record = (records or Records()).read(holder.job)
    except Exception:  # any error of Ray's store: then it is not known
        return False
    if record is None or not record.has_ended:
        return False
    return holder.pid in {worker.pid for worker in record.workers.values()}
