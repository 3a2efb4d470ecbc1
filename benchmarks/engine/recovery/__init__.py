"""A job that comes back, on Ray: its output, and its silence, after faults."""
