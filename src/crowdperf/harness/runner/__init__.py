"""One LoadGen run: its request, settings, samples, LoadGen, and result."""
