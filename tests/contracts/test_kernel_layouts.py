"""Kernels give the same bits for arrays in any memory layout, and read nothing between the entries of an array."""

from functools import partial

import pytest
from every_kernel import CALLS, different, given, placed, results
from kernel_data import DTYPES, LAYOUTS, arrange, clustered

from cprime.kernels import Dense

OF_NUMPY = {"projected", "principal"}  # matrix products of NumPy, which may round otherwise in another layout


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_layout_gives_the_same_bits(dtype, layout, tmp_path):
    X, g = clustered(101, 19, dtype), given(101, clustered(37, 19, dtype, seed=2))
    place = partial(arrange, layout=layout, folder=tmp_path)
    names = CALLS.keys() - OF_NUMPY
    assert different(results(Dense(X), g, names), results(Dense(place(X)), placed(g, place), names)) == []
