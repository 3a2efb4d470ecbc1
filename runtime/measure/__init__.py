"""Measurements of a run: latencies, stages, channels, and the ledger, which must balance."""
