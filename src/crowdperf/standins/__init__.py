"""Everything synthetic: made data and small networks, for trying a benchmark out. Never submittable."""
