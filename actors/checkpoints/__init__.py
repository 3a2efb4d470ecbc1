"""Keep checkpoints on disk: a file a slot, a manifest as the commit. No Ray."""
