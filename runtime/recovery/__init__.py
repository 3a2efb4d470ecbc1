"""Recovery of a job: checkpoints put together of slots' parts, and attempts to go on."""
