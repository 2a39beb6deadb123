"""The parts of a model card, each from what the run recorded."""
