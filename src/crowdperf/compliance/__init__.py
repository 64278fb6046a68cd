"""The verdicts of the compliance tests, from the logs of their runs. It starts no run."""
