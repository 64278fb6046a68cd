"""Backends, one folder each. `base` has their interfaces."""
