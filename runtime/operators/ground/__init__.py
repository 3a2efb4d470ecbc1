"""The contract of all operators, and the code that they share.

- `arrays.py`: Small array tools that the operators share: arrays that grow, runs, slices of a
  weight.
- `checks.py`: Checks of a step's arguments, given the columns of its inputs.
- `codes.py`: Values of a column become dense codes, in order of first appearance.
- `contract.py`: The contract of every operator; `GateRead`, in the model, is its input.
- `drift.py`: `drift=` tells an operator how far event times may be off.
- `failed_rows.py`: Rows for which a user's function raised, where `on_error=` lets the others go
  on.
- `fit.py`: Columns of promised types, made of what a user's function returned.
- `flow_builder.py`: A FlowBuilder holds the steps of an unfinished flow, and what the next step
  needs.
- `in_order.py`: Rows that wait to leave by event time.
- `keep.py`: `keep=` of joins, and the sources without promises, which keep rows until their end.
- `keys.py`: Keys become one dense code per row, and codes become keys again.
- `late_rows.py`: Late rows came too late to count in full: their count, and the rows themselves.
- `of_keys.py`: Objects of keys, such as matchers, which a cut refers to without a copy.
- `open_table.py`: An open hash table has the codes of whole numbers in any range.
- `stored_rows.py`: Rows that an operator stores by place, in a few batches, older ones longer.
- `streams.py`: The base of streams for the methods that operators add: flow, columns, a new step.
- `untouched.py`: Keys that no row touches for long go at multiples of `keep=`, in event time.
- `user_code.py`: Calls of the user's code, with errors that name the step whose code failed.
"""
