"""The operator round that of a pattern: it drops events under load.

- `event_drops.py`: EventDrops drops an event from all windows that wait for it.
- `kept.py`: The fate of the rows of a read, where events are dropped under load.
- `kinds.py`: Kinds of events: besides its place, shedding knows an event's type and a feature.
- `open_windows.py`: The windows of a key in the shedder: which events each has, and lost.
- `pair_drops.py`: Dropping pairs of an event and a window, each window by itself, as [espice] does.
- `shed_matchers.py`: Matchers of a pattern that sheds: windows may have lost events.
- `shed_pattern.py`: A pattern that sheds events: an operator round the machine of the pattern.
- `what_if.py`: Trials find the cost of shedding: the matches of windows with and without it.
- `window_shedding.py`: WindowShedding drops events of windows, read by read, and learns from
  windows.
- `words.py`: The values that a user writes for `shed=`, with lengths of time in words.
"""
