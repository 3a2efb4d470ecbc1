"""How Spark's executors push the rows of an unbounded frame into a source.

    executor ──DATA──▶ reader (in the source actor) ◀──COMMIT── feeder (in the driver)

`wire` has the frames, `epochs` decides which rows become visible and when, `sender` runs in
the executors' Python workers, `reader` in the source actor, `feeder` beside Spark's driver;
`peer_guard` lets only those in; `streaming` is what a user calls.
Nothing is imported here: an executor's worker needs the sender alone.
"""
