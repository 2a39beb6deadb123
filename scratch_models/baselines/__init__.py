"""What the chapter compares Transformers with."""
