"""Lets the tests import the harness and mlperf_results as a run does."""

import sys

import harness_support

sys.path[:0] = [str(path) for path in (*harness_support.SOURCES, harness_support.SCRIPTS / "get-mlperf-data-lib")]
