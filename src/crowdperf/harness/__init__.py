"""One LoadGen run of one model on one backend, described by a run.json. It loads benchmarks and backends by the name of
their folder, and imports none.

Reading order: `__main__` (the commands), `runner/run.py` (one run as a straight line), `runner/sut.py` (how queries
become responses), `backends/null`; `find/` looks for the rate of a run, `watch/` at the machine meanwhile. A backend is
one folder in `backends/`, a data set one file in `datasets/`, a metric one in `metrics/`; `media/` and `detection/` are
what these share. Benchmarks are the room `benchmarks`, programs that make model files the room `models`.
"""
