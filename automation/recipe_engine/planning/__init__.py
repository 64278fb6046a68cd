"""The same steps on paper: an engine, contexts, effects and a cache that touch nothing.

In order, each module imports only earlier ones and earlier packages:

planned_store, planned_tree, planned_step, planned_effects, planned, explained.
"""
