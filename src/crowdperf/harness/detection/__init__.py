"""From what networks give to what is scored: boxes, and beams of tokens."""
