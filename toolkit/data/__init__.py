"""Data: read a file right or refuse it with its row, label it, split it, tokenise it."""
