"""Live sinks that are killed, and readers who look at them all the while."""
