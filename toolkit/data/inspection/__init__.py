"""What recipes make of a data set, for `toolkit data`: read by their loaders, then described."""
