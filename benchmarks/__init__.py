"""Benchmarks: `python -m benchmarks` lists them.

A folder a paper (`ssg`, `sltuner`: the tuner of [ssg] has so many that they are a folder of their
own), and `engine` for what no paper has. On top lies what every folder needs: the runner
(`__main__.py`, where each benchmark is registered), `frame.py` and `offline.py`. The engine
imports no other folder, `sltuner` and `ssg` that of the engine, `ssg` also the deadlines of
`sltuner`.
"""
