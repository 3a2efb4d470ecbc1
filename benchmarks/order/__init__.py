"""Order from sources ([thesis] §5): rows that come shuffled, from one source and from several."""
