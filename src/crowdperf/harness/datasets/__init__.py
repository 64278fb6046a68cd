"""Data sets, one file each; `base` says what one is."""
