"""One folder an architecture: a short builder and its name table."""
