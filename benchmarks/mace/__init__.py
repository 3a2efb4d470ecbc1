"""Benchmarks of [mace]: latency predicted before a flow runs, beside what it then is."""
