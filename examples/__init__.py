"""Flows to read, run and change."""
