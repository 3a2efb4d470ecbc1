"""Benchmarks: `python -m benchmarks` lists them.

A folder a paper, and `engine` for what no paper has; the tuner of [ssg] has most of all, so it is
a folder of its own, `sltuner`. On top lies what every folder needs: the runner (`__main__.py`,
where each benchmark is registered), its ends (`ended.py`), options, claims, tables and results
(`frame.py`), jobs run to their end (`jobs.py`), runs on all cores (`side_by_side.py`), and the same
queries offline (`offline.py`). tests/benchmarks/test_folders.py holds which folders import others.
"""
