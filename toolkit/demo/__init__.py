"""Embedded defaults: real data and a real pretrained model from PyPI, so that no Hub is needed."""
