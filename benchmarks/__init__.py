"""Benchmarks: `python -m benchmarks` lists them.

A folder a paper, and `engine` for what no paper has; the tuner of [ssg] has most of all, so it is
a folder of its own, `sltuner`. On top lies what every folder needs: the runner (`__main__.py`,
where each benchmark is registered), `ended.py`, `frame.py` and `offline.py`. Of the folders only
`ssg` imports others: the engine's inputs, and the flow that `sltuner` has under a deadline.
"""
