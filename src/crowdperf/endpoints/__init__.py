"""Submissions to MLPerf Endpoints: the files of MLCommons' client, what follows from its events, the tree, its rules.
It does not measure.

How a curve is measured is in crowdperf.curves; what is read here may come from anywhere.
"""
