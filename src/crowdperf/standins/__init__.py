"""Everything synthetic: data and small networks for trying a benchmark out. Results from it are never submittable."""
