"""Lets the tests import the harness and mlperf_results as a run does."""

import sys

import harness_support
import pytest

sys.path[:0] = [str(path) for path in (*harness_support.SOURCES, harness_support.SCRIPTS / "get-mlperf-data-lib")]


@pytest.fixture(scope="module")
def one_thread():
    """Small networks in torch are quickest with one thread, on a busy machine by far."""
    import torch  # not every environment of these tests has it

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
