"""Source files that are copied into shared folders; they import torch and transformers alone.

transformers loads them with `trust_remote_code=True`, one file by itself: nothing of this package
is there then.
"""
