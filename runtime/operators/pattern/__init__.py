"""`pattern`: sequences of events (docs/decisions/2026-11-24-patterns.md)."""
