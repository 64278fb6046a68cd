"""Data sets and models on disk: published files, a user's own copies, and whether all of a data set is there. It
does not decode samples."""
