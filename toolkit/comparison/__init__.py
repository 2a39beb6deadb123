"""Comparing finished runs on the same test examples: alignment, methods, pairs, curves."""
