"""Fine-tune, evaluate and compare Transformers, scratch models and HuggingFace models alike."""
