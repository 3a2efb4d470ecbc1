"""`followed_by`: an event, and the next of its key that follows it, within clocks' bounds.

- `before.py`: The order of events as far as clocks tell: which may follow first.
- `machine.py`: Rows in stream order become pairs of an event and its first follower.
- `step.py`: `followed_by`: its step, and the method that makes it.
"""
