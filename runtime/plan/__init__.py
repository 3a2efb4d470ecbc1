"""Plans: the steps of a flow, what they come to as a graph, and which stages they make in slots.

| page | what it has |
| --- | --- |
| `step.py`, `steps.py`, `slack.py` | what each step says; sources, sinks, gates; how gates wait |
| `promises.py` | what becomes of promises on their way |
| `graph.py` | the steps as a graph: their order, whether they can run, which columns they need |
| `marks.py`, `canonical.py` | what a sink's output depends on, so that a run may be resumed |
| `draft.py`, `plan.py`, `place.py` | from steps to stages and channels, and to slots |
| `words.py`, `unpaced.py` | words for sources, sinks, and deadlines of history |
"""
