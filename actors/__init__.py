"""Ray shells around the runtime: receive, ask it, perform."""
