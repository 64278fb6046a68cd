"""Curves of MLPerf Endpoints: points over concurrency, measured by MLCommons' client.

A curve is a sweep whose points are concurrencies. Needs neither cmind nor the engine. The tree of a submission, its
files and the rules on them are in crowdperf.endpoints, which knows nothing of how points are run.
"""
