"""What recipes make with the harness: models, weights, lower precisions, engines, synthetic pictures."""
