"""What a run used and what came out of it, so that another one does the same: lockfiles and records of results.

In order, each module imports only earlier ones and earlier packages:

lockfile, lock, record, compare, slowdown, slowdown_text, diff, reproduce.
"""
