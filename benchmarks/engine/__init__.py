"""What the engine itself can do: merging, joining, aggregating, hops, hosts, sinks, memory."""
