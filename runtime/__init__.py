"""Semantics of streams, and all decisions: pure machines without Ray, Spark or hidden clock."""
