"""Plans: the steps of a flow, what they come to as a graph, and which stages they make.

| page | what it has |
| --- | --- |
| `step.py`, `steps.py`, `slack.py` | what each step says; sources, sinks, gates; how gates wait |
| `promises.py` | what becomes of promises on their way |
| `graph.py` | the steps as a graph: their order, whether they can run, which columns they need |
| `flow_fingerprints.py`, `canonical.py` | what output depends on, for `resume` |
| `planned_stages.py`, `plan.py` | from steps to stages and channels |
| `verdict.py` | whether a plan may run, and what is said of it |
| `slots.py`, `slot_plan.py` | a slot as a value, and its part of a plan |
| `relocation.py` | from one placement to another: what moves, and who holds still |
| `settings_text.py`, `unpaced.py` | words for sources, sinks, and deadlines of history |
"""
