"""Benchmarks of [mace]: latency predicted before a flow runs, placement, and the order of work."""
