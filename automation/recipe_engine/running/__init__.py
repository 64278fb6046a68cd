"""Carrying a request out: hooks, scripts and processes, one step after the other.

In order, each module imports only earlier ones and earlier packages:

host, memory, interrupts, prompts, masked_output, process, failure, shell, compat, successor, context, hooks, effects,
engine, lookup, step, journal, locked.
"""
