"""Both implementations of the kernels, for contracts which each must keep."""

import pytest
from kernel_calls import native, reference


@pytest.fixture(params=[native, reference], ids=["native", "reference"])
def kernels(request):
    return request.param
