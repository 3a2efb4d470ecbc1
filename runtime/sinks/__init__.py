"""Outputs and their commits: whole parts, locks, and whether a run may continue one."""
