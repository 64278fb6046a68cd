"""Backends, one folder each; `base` says what one is."""
