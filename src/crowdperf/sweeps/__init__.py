"""Sweeps: many calls of one recipe from one file, run one after another here or as jobs of Slurm.
It does not know the measurement of a point.

A sweep is expanded into points; each point has a folder, in which attempts are made until one publishes a result.
"""
