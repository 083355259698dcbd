"""Fixture with both implementations of the kernels, compiled and NumPy reference, which obey the same contracts."""

import pytest
from kernel_calls import native, reference


@pytest.fixture(params=[native, reference], ids=["native", "reference"])
def kernels(request):
    return request.param
