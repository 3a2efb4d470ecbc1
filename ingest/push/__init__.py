"""Push the rows of an unbounded Spark frame from its executors into a source.

    executor ──DATA──▶ reader (in the source actor) ◀──COMMIT── feeder (in the driver)

`wire` has the frames, and the guard that admits only peers. `epochs` decides which rows become
visible and when. `sender` runs in the executors' Python workers, `reader` in the source actor,
`feeder` beside Spark's driver. `streaming` is the user's call.
Nothing is imported here: an executor's worker needs only the sender.
"""
