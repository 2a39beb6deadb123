"""What the heads of a model attend to: weights, rollout, and a page to look at them.

weights   the attention weights of one input, of any model of ours or HuggingFace's
tokens    tokens as a reader wants to see them
rollout   attention over all layers (Abnar and Zuidema 2020)
reading   a run, a folder or a Hub name reads a text, a pair, a text to translate
images    the same of an image
page      all of it as one HTML file
picture   as a PNG or SVG
numbers   as JSON
"""

from toolkit.attention.tokens import Tokens, tokens_of
from toolkit.attention.weights import AttentionMaps, collect

__all__ = ["AttentionMaps", "Tokens", "collect", "tokens_of"]
