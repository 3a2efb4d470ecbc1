"""Sources: Arrow blocks in, batches with times and promises out."""
