"""crowdperf: everything that its recipes run, in rooms. A room imports only rooms above it in
docs/explanation/architecture.md."""
