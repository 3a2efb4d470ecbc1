"""Placement of a plan's stages in slots, by a rule or by the user.

| file | content |
| --- | --- |
| `place.py` | the simple rule, and the user's `placement=` |
| `moved.py` | another placement of a running flow: which stages may move |
| `placement_text.py` | the placement as text |
"""
