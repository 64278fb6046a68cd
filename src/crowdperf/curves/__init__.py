"""Curves of MLPerf Endpoints: points over concurrency, measured by MLCommons' client. It
has no rules: those are in `endpoints`.

A curve is a sweep whose points are concurrencies. The room `endpoints` knows nothing of how points are run.
"""
