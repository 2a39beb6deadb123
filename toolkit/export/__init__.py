"""Trained models in other formats, each checked against the run it was made from."""
