"""Run a slot in real time, around `runtime/schedule/slot.py`. No Ray.

`actors/jobs` makes `actor.py` a Ray actor.

| file | what it does |
| --- | --- |
| `host.py` | the slot's loop, its channels and its sinks; begin here |
| `actor.py` | the same in few methods, for Ray to wrap |
| `loop_mailbox.py` | its mailbox: calls of other threads to the loop |
| `clock_sync.py` | its clock, compared with the reference's |
| `report.py`, `slot_samples.py` | its reports to its job; to the tuner |
| `channel_ends.py` | the ends of its channels to other slots |
| `news.py` | lets a caller wait until the slot has worked |
| `moving_stages.py`, `handover.py` | hold the slot still, and give stages to other slots |
| `peers.py` | checks the slots at the other ends |
| `read_ahead.py` | reads custom inputs in threads |
| `last_words.py` | records how its process ends |
| `user_output.py` | gathers the output of users' functions |
| `without_pandas.py` | keeps Arrow from loading pandas needlessly |
| `pandas_in_code.py` | checks whether users' code may want pandas |
"""
