"""How much to drop under load, and which events: [espice].

The files here know nothing of patterns: they see each event of a window by its type and its
position, and later which of them were in a match. `wrapper` is the operator round that of a
pattern, and has what users write.

`settings` has what users set. `machine` measures an operator's load, and joins `overload` (the law:
when and how much) with a `shedder` (which): `espice`, `featured`, or `contest`, of these two the
one that loses less by its `evidence`. A model is counted in a `table` of cells (`places`), begins
with types and places by themselves (`priors`), is brought to a scale (`scales`) and cut
(`thresholds`); what is dropped of a read (`spans`) is looked up in it at once (`runs`). Whole
events are cut by `event_cut`. `change` tells when a model is out of date; `probes` and `losses`
tell what dropping costs in matches.
"""
