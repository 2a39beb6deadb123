"""Give a trained model to others: a folder that loads without this package, and its checks."""
