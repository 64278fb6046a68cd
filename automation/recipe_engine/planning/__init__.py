"""The same executor on paper: engine, frames and store that touch nothing.

In order, each module imports only earlier ones and earlier packages:

planned_store, planned_tree, planned_frame, planned, explained.
"""
