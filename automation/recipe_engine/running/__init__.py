"""Carrying a request out: hooks, scripts and processes, one step after the other.

In order, each module imports only earlier ones and earlier packages:

console, process, failure, shell, compat, context, hooks, effects, engine, step, journal,
toolversion.
"""
