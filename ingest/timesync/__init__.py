"""How far the clock of a source is from ours: asked over UDP, added to its rows."""

from ingest.timesync.client import ClockOffset, TimeSync
from ingest.timesync.key import new_key
from ingest.timesync.server import TimeServer
from ingest.timesync.synced import SyncedInput, synced

__all__ = ["ClockOffset", "SyncedInput", "TimeServer", "TimeSync", "new_key", "synced"]
