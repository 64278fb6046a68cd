"""Model files that recipes make: weights, lower precisions, engines. It does not measure."""
