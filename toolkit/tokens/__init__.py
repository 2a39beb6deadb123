"""How tokenizers cut a text: tokens to read, ids, places in the text, what is unknown."""
