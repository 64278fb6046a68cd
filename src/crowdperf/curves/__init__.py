"""Curves of MLPerf Endpoints: points over concurrency, measured by MLCommons' client, checked and laid out as a tree.

Needs neither cmind nor the engine. The rules (regions, the client's files, what follows from its events, the tree and
what is wrong with one) know nothing of how points are run.
"""
