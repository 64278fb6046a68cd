"""crowdperf: everything that its recipes run, in rooms; docs/explanation/architecture.md shows them.

A room imports only rooms below it in the picture there.
"""
