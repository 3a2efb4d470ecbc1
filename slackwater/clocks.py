"""Clocks of sources that are off (docs/source-clocks.md)."""

from slackwater.ingest.timesync.client import TimeSync
from slackwater.ingest.timesync.server import TimeServer
from slackwater.ingest.timesync.synced import synced
from slackwater.runtime.operators.ground.drift import clock_bound
from slackwater.runtime.sources.clock_columns import clock_columns

__all__ = ["TimeServer", "TimeSync", "clock_bound", "clock_columns", "synced"]
