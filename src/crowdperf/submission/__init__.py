"""From results folders to a submission tree: what is there, what is missing, what is written and how it gets there. It
judges nothing: the gate does."""
