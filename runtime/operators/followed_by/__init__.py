"""`followed_by`: an event, and the next of its key that follows it, within clocks' bounds.

| page | contents |
| --- | --- |
| `step.py` | what a user writes, and the step made of it |
| `machine.py` | rows in, matches out; the events that wait for others |
| `before.py` | which event is before which, and which may be the first that follows |
"""
