"""Placement of a plan's stages in slots, by a rule or by the user.

- `key_shares.py`: Key groups of replicas: as many as give each its share of a step's rows.
- `moved.py`: New placement of a running flow: the user moves some stages, all others stay.
- `place.py`: Placement of stages in slots: the simple rule, and the user's `placement=`.
- `placement_text.py`: Placement of a plan as text, for `explain`: slots, and why stages share them.
"""
