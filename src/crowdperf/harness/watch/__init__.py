"""What a run is watched with: the machine, its load, its GPUs, and the line that says how far it is."""
