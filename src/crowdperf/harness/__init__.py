"""The MLPerf harness: one LoadGen run of one model on one backend, described by a run.json.

Reading order: `__main__` (the commands), `run` (one run as a straight line), `sut` (how queries become responses),
`backends/null`; `find/` looks for the rate of a run, `watch/` at the machine meanwhile. A benchmark is one folder in
`benchmarks/`, a backend one in `backends/`, a data set one file in `datasets/`; `media/` and `decoding/` hold what
these share, `making/` makes model files. Nothing here knows cmind or the recipe engine.
"""
