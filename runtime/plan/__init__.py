"""Plans: the steps of a flow, their graph, and the stages that they make.

- `after_failure.py`: Guarantees of sources and sinks after a failure, in a job with checkpoints.
- `arrivals.py`: Paths of arrivals: the sources that tell arrivals, and the steps that use them.
- `beginning.py`: Beginnings of replays: the sources of a flow that are replayed begin at one
  arrival.
- `by_default.py`: Checkpoints by default, if a flow is live and they make nothing worse.
- `canonical.py`: Canonical texts of steps: equal for two runs whose output is the same.
- `changes.py`: Changes along paths: streams that carry them, and steps that refuse them.
- `division.py`: Division of a flow's steps into stages, as an earlier start of it had them.
- `event_time_type.py`: Type of a column of event times that a step makes, such as `window_start`.
- `expected.py`: Expected latency: the prediction of a plan, which travels with it for a later
  comparison.
- `flow_fingerprints.py`: Fingerprints of flows: whether a later run can resume a sink's output.
- `former_names.py`: Former names of steps that a user has renamed, for whoever reads state of
  before.
- `graph.py`: Graph of a flow's steps: their order, checks, and the columns that they need.
- `partial_results.py`: Partial results beside the source, for steps whose replicas get rows by key.
- `parts.py`: Parts of steps: from a subject to the stages of a plan.
- `plan.py`: Plans: the stages of a flow's steps, their channels, and their slots.
- `planned_stages.py`: Planned stages: the stages of each step, and traits of their rows, before
  channels exist.
- `promises.py`: Promises along paths: summaries of a step's ports, and traits of its output.
- `relocation.py`: Relocation of a running flow: the stages that move, and the slots that stand
  still.
- `row_fields.py`: Fields of rows along paths: a channel carries those that a step downstream reads.
- `slack.py`: Slack of a gate, as users write it.
- `slot_plan.py`: Part of a plan that one slot needs: its stages and their settings.
- `slots.py`: Slots as values: each core of a node is a slot.
- `stage_versions.py`: Versions of stages: a digest of what each does with a row.
- `step.py`: A step of a dataflow: frozen settings, never state.
- `steps.py`: Steps without operators: sources, sinks, the gate that replicas share, late rows.
- `traits.py`: Traits of a step: facts for the plan, slots and predictions, as one value.
- `unpaced.py`: Note on a deadline over history that is read as fast as possible.
- `verdict.py`: Verdict on a plan: whether it may run, and notes for its user.
"""
