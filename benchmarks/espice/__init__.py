"""[espice]: which events are dropped under overload, and what that costs in matches."""
