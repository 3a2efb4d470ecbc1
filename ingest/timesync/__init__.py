"""How far the clock of a source is from ours: asked over UDP, added to its rows."""

from slackwater.ingest.timesync.client import ClockOffset, TimeSync
from slackwater.ingest.timesync.key import new_key
from slackwater.ingest.timesync.server import TimeServer
from slackwater.ingest.timesync.synced import SyncedInput, synced

__all__ = ["ClockOffset", "SyncedInput", "TimeServer", "TimeSync", "new_key", "synced"]
