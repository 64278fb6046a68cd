"""crowdperf: everything that its recipes run, in rooms; docs/explanation/architecture.md shows them.

A room imports only rooms below it in the picture there.
"""

__version__ = "0.1.0"
"""The version, here alone: pyproject.toml, `--version`, results and telemetry read it."""
