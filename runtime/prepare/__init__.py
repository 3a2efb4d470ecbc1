"""Preparation of a flow: from a flow to its plan and verdict, on both hosts.

| file | content |
| --- | --- |
| `prepare.py` | all steps: checks, placement, fingerprints, settings, verdict |
"""
