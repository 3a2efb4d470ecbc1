"""Plans: the steps of a flow, their graph, and the stages that they make.

| file | contents |
| --- | --- |
| `step.py`, `steps.py`, `slack.py` | settings of each step; sources, sinks, gates; how gates wait |
| `promises.py` | how promises change from source to sink |
| `graph.py` | the steps as a graph: their order, whether they can run, which columns they need |
| `flow_fingerprints.py`, `canonical.py` | what output depends on, for `resume` |
| `planned_stages.py`, `plan.py` | from steps to stages and channels |
| `row_fields.py`, `arrivals.py` | which fields rows have on each channel; where arrivals are told |
| `parts.py` | from a step, or a part of it, to its stages |
| `verdict.py` | whether a plan may run, and the notes for its user |
| `slots.py`, `slot_plan.py` | a slot as a value, and its part of a plan |
| `relocation.py` | from one placement to another: what moves, and who holds still |
| `beginning.py` | where the replays of sources begin |
| `unpaced.py` | words for deadlines of history |
"""
