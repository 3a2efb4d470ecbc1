"""Benchmarks of [mace]; figures in docs/benchmarks/mace.md."""
