"""Control loop of both hosts: samples in, commands out.

- `commands.py`: Commands of deciders to slots of a running job; only `Slot.apply` carries them out.
- `deciders.py`: Commands of several deciders; where they differ, the first in the list prevails.
- `graph.py`: Graph of a flow as deciders see it: steps, their inputs, and gates to set.
- `loop.py`: Control loop of both hosts: samples of slots in, commands to slots out.
- `rest.py`: Time that events still take after a step that sheds: it bounds the flow's latency.
"""
