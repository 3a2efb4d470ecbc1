"""The floor that every policy is held against: how few slack-ready rows there can be."""
