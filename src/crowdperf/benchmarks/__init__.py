"""Benchmarks, one folder each; `base` says what a model is."""
