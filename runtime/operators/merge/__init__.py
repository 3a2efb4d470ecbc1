"""`merge`: several streams of one schema, in event-time order. It keeps no state."""
