"""Checks data sets and models on disk and gives them to other recipes; plain Python, used from hooks and programs."""
