"""Both implementations of the kernels, for contracts which each must keep."""

import pytest

from cprime import kernels as native
from cprime.kernels import reference


@pytest.fixture(params=[native, reference], ids=["native", "reference"])
def kernels(request):
    return request.param
