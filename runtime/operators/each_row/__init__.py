"""Operators that look at each row alone: a file each, with step, machine and method."""
