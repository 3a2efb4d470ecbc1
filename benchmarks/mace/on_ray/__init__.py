"""`mace-*` on Ray: the same queries on local nodes, in real time, beside what was predicted."""
