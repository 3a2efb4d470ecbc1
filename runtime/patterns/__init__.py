"""Patterns of events: how they are written, what they mean, how matches are found."""
