"""Clocks of sources that are off (docs/source-clocks.md)."""

from slackwater.ingest.timesync import TimeServer, TimeSync, synced
from slackwater.runtime.operators.ground.drift import clock_bound
from slackwater.runtime.sources.clock_columns import clock_columns

__all__ = ["TimeServer", "TimeSync", "clock_bound", "clock_columns", "synced"]
