"""Run a slot in real time, around `runtime/schedule/slot.py`. No Ray.

`actors/jobs` makes `actor.py` a Ray actor.

- `actor.py`: Wrap a slot as a Ray actor: its control methods, and its users' output.
- `channel_ends.py`: Hold a slot's ends of its channels to other slots.
- `clock_sync.py`: Compare a slot's clock with the reference's, over the network.
- `cutting.py`: Let a slot's loop cut its streams for a checkpoint, and give its part.
- `handover.py`: Define what slots hand over to each other, through their job, as stages move.
- `host.py`: Run a slot in real time: one core, one loop around `runtime/schedule/slot.py`.
- `last_words.py`: Record how a slot's process ends, in a small file beside Ray's log of it.
- `loop_mailbox.py`: Pass calls of other threads to a slot's loop, which runs them between two
  slices.
- `moving_stages.py`: Let a slot's loop hold still, give stages away, and go on with others.
- `peers.py`: Check the slots at the other ends of a slot's channels; make frame codecs.
- `process_setup.py`: Prepare a slot's process: memory that it keeps, turns of its threads,
  libraries it loads.
- `read_ahead.py`: Read custom sources in their own threads: a poll that waits delays no other
  stage.
- `report.py`: Report a slot to its job: its identity, and its counters.
- `short_collections.py`: Collections of cyclic garbage that are short, whatever a job keeps.
- `silence.py`: End slots that stand still, by their node's supervisor.
- `slot_samples.py`: Define a slot's samples for its job's tuner.
- `spooled.py`: Spool rows of an input that is read once, so that a restore has them.
- `user_output.py`: Gather lines that users' functions print in a slot: named by step, bounded,
  counted.
"""
