"""Benchmarks of [mace]: latency by stimulus, how it is scheduled, and how it is predicted."""
