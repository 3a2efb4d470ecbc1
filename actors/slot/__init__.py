"""Slot in real time, around `runtime/schedule/slot.py`. No Ray: `actor.py` is made one elsewhere.

| file | what it does |
| --- | --- |
| `host.py` | the slot's loop, its channels and its sinks; begin here |
| `actor.py` | the same with few methods, for Ray to wrap |
| `loop_mailbox.py` | its mailbox: what other threads ask of the loop |
| `clock_sync.py` | its clock, compared with the reference's |
| `report.py`, `slot_samples.py` | what it says of itself; to the tuner |
| `channel_ends.py` | the ends of its channels to other slots |
| `news.py` | whether it has something to tell, for who waits for that |
| `moving_stages.py`, `handover.py` | how it holds still, and gives stages to other slots |
| `peers.py` | whether the slots at the other ends are there |
| `read_ahead.py` | inputs of the user's own, read in threads |
| `last_words.py` | how its process ends, for who asks when it is gone |
| `user_output.py` | what users' functions print |
| `arrow_ahead.py` | what Arrow will need, imported before the job begins |
| `without_pandas.py` | what Arrow would load in case of need, left out |
| `pandas_in_code.py` | whether users' code may want that |
"""
