"""What tests of the harness share."""

import pytest


@pytest.fixture(scope="module")
def one_thread():
    """Small networks in torch are quickest with one thread, on a busy machine by far."""
    import torch  # not every environment of these tests has it

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
