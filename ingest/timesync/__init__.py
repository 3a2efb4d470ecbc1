"""Ask over UDP for the offset of a source's clock; add it to rows."""

from slackwater.ingest.timesync.client import ClockOffset, TimeSync
from slackwater.ingest.timesync.key import new_key
from slackwater.ingest.timesync.server import TimeServer
from slackwater.ingest.timesync.synced import SyncedInput, synced

__all__ = ["ClockOffset", "SyncedInput", "TimeServer", "TimeSync", "new_key", "synced"]
