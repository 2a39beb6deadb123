"""Everything about HuggingFace checkpoints: names, loading, saving, the Auto classes."""
