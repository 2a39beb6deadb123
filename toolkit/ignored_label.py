"""The label of what has no loss term: a position or a token that nothing is to be predicted for."""

IGNORED = -100
"""What PyTorch's cross entropy and HuggingFace's collators and models leave out."""
