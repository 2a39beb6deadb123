"""The training loop, and what it needs: steps, checkpoints, memory, processes that may fail."""
