"""BERT (Devlin et al. 2018, arXiv:1810.04805)."""
