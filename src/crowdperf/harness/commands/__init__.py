"""The commands of the harness beside a run: prepare samples, score a run, fetch and check data sets."""
