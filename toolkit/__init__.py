"""Fine-tune, evaluate and compare Transformers; works with scratch_models and HuggingFace models alike."""
