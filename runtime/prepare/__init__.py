"""Preparation of a flow: from a flow to its plan and verdict, on both hosts.

- `prepare.py`: Prepare a flow's plan, for the cluster and the simulator.
"""
