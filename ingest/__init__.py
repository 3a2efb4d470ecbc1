"""Turn files and memory into Arrow blocks. `runtime` decides what the blocks mean."""
