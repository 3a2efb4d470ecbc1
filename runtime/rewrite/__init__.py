"""Rewrites of a flow that keep its results, and the search among them.

Source: [mace] §IX-A. Why these: docs/decisions/2026-11-23-plan-selection.md.
"""
