"""What the chapter on Transformers claims, measured: one module a claim."""
