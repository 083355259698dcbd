"""Rows rounded to bytes times a scale: products of bytes are exact, and the rounding error is measured.

Tested with AVX512-VNNI instructions if the processor has them, and in software.
"""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from marks import long_but

CPP = Path(__file__).resolve().parents[2] / "cpp"
COMPILER = os.environ.get("CXX", "c++")
SOURCE = """
#include "bytes.h"
namespace cprime::tried {
extern "C" void rounded(const float *x, int n_rows, int D, const float *shift, float sign, coarse *tiles,
                        CoarseRows *rows) {
    round_rows([&](int i) { return x + i * D; }, n_rows, FETCH_NOTHING, D, shift, sign, tiles, *rows);
}
extern "C" void products(const coarse *left, const CoarseRows *rows, coarse *right, int D, float *out) {
    make_columns(right, D);
    make_columns(right + coarse_depth(D) * COARSE_ROWS, D);
    multiply<2, 2>(left, rows, right, D, out, 32);
}
extern "C" void products_of_one(const coarse *left, const CoarseRows *rows, coarse *right, int D, float *out) {
    make_columns(right, D);
    multiply<2, 1>(left, rows, right, D, out, 32);
}
}
"""
ROWS = 16
FIELDS = np.dtype([(name, np.float32, ROWS) for name in ("square", "lost", "scale")] + [("start", np.int32, ROWS)])
SETS = {
    "software": ({"avx2", "fma"}, ["-mavx2", "-mfma", "-DCPRIME_EMULATE_AVX512", "-DCPRIME_EMULATE_VNNI"]),
    "processor": (
        {"avx512f", "avx512dq", "avx512vl", "avx512bw", "avx512_vnni"},
        ["-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw", "-mavx512vnni", "-mfma"],
    ),
}


@pytest.fixture(scope="module", params=long_but([list(SETS)[-1]], SETS))
def library(request, tmp_path_factory):
    needed, flags = SETS[request.param]
    cpuinfo = Path("/proc/cpuinfo")
    if not shutil.which(COMPILER) or not cpuinfo.exists() or not needed <= set(cpuinfo.read_text().split()):
        pytest.skip(f"needs a compiler and a processor with {', '.join(sorted(needed))}")
    path = tmp_path_factory.mktemp("bytes") / f"{request.param}.so"
    options = ["-std=c++20", "-O2", "-Wno-psabi", "-shared", "-fPIC", f"-I{CPP}", "-x", "c++", "-"]
    command = [COMPILER, "-DCPRIME_ISA=tried", "-fno-math-errno", "-ffp-contract=fast", *flags, "-o", path, *options]
    subprocess.run(command, input=SOURCE, text=True, check=True)
    return ctypes.CDLL(path)


def pointer(array):
    assert array.flags.c_contiguous
    return array.ctypes.data_as(ctypes.c_void_p)


def aligned(size, dtype):
    """Return zeros at an address that is a multiple of a vector's bytes."""
    memory = np.zeros(size * np.dtype(dtype).itemsize + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + size * np.dtype(dtype).itemsize].view(dtype)


def rounded(library, X, shift=None, sign=1.0):
    """Return the tiles of at most 16 rows, the record of their scales and errors, and the rounded numbers (16, D)."""
    X = np.ascontiguousarray(X, dtype=np.float32)
    n, D = X.shape
    depth = -(-D // 64) * 64
    tiles, known = aligned(ROWS * depth, np.int8), aligned(1, FIELDS)
    shift = np.zeros(D, dtype=np.float32) if shift is None else shift
    library.rounded(pointer(X), n, D, pointer(shift), ctypes.c_float(sign), pointer(tiles), pointer(known))
    return tiles, known[0], tiles.reshape(-1, ROWS, 64).transpose(1, 0, 2).reshape(ROWS, depth)[:, :D].astype(int)


def product(library, X, Y):
    """Return the products of 32 rows with 32 others, and the rounded numbers of both."""
    left, right = ([rounded(library, half) for half in (rows[:ROWS], rows[ROWS:])] for rows in (X, Y))
    tiles = [aligned(sum(len(part[0]) for part in parts), np.int8) for parts in (left, right)]
    for whole, parts in zip(tiles, (left, right), strict=True):
        whole[:] = np.concatenate([part[0] for part in parts])
    known = aligned(2, FIELDS)
    known[:] = [part[1] for part in left]
    out = aligned(32 * 32, np.float32)
    library.products(pointer(tiles[0]), pointer(known), pointer(tiles[1]), X.shape[1], pointer(out))
    return out.reshape(32, 32), *(np.concatenate([part[2] for part in parts]) for parts in (left, right))


@pytest.mark.parametrize("D", [1, 3, 4, 16, 17, 63, 64, 65, 130, 300])
def test_products_of_coarse_numbers_are_exact(library, D):
    rng = np.random.default_rng(D)
    out, left, right = product(library, rng.standard_normal((32, D)), rng.standard_normal((32, D)))
    np.testing.assert_array_equal(out, left @ right.T)


def test_sums_at_the_ends_of_their_range_are_exact(library):
    X = np.ones((32, 1 << 16))
    out, left, right = product(library, X, -X)
    assert (left == 127).all()
    assert (right == -127).all()
    np.testing.assert_array_equal(out, np.float32(-127 * 127 * (1 << 16)))


def test_products_with_one_tile_of_columns_are_exact(library):
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((32, 70)), rng.standard_normal((16, 70))
    parts = [rounded(library, X[:ROWS]), rounded(library, X[ROWS:])]
    tiles, known = aligned(2 * len(parts[0][0]), np.int8), aligned(2, FIELDS)
    tiles[:], known[:] = np.concatenate([part[0] for part in parts]), [part[1] for part in parts]
    right, _, numbers = rounded(library, Y)
    out = aligned(32 * 32, np.float32)
    library.products_of_one(pointer(tiles), pointer(known), pointer(right), 70, pointer(out))
    expected = np.concatenate([part[2] for part in parts]) @ numbers.T
    np.testing.assert_array_equal(out.reshape(32, 32)[:, :16], expected)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e15])
def test_what_rounding_takes_is_measured(library, sign, scale):
    rng = np.random.default_rng(2)
    X, shift = (scale * rng.standard_t(3, (n, 45)).astype(np.float32) for n in (13, 1))
    _, known, numbers = rounded(library, X.astype(np.float32), shift[0].astype(np.float32), sign)
    held = sign * (X - shift).astype(np.float64)
    assert np.abs(numbers).max() == 127, "the scale is that of the largest number"
    np.testing.assert_allclose(known["square"][:13], (held**2).sum(axis=1), rtol=1e-5)
    lost = held - known["scale"][:13, np.newaxis].astype(np.float64) * numbers[:13]
    np.testing.assert_allclose(known["lost"][:13], (lost**2).sum(axis=1), rtol=1e-4, atol=1e-36)
    assert (np.abs(lost) <= known["scale"][:13, np.newaxis] * 0.5001).all()
    for name in ("square", "scale", "start"):
        assert not known[name][13:].any(), "rows that are missing"


@pytest.mark.parametrize(("value", "lost"), [(0.0, 1e-15), (1e-35, 1e-15), (np.inf, np.inf)])
def test_rows_without_a_scale_are_lost_whole(library, value, lost):
    X = np.full((2, 20), value, dtype=np.float32)
    _, known, numbers = rounded(library, X)
    assert not numbers.any()
    assert not known["scale"].any()
    assert not known["start"].any()
    norm = np.sqrt(np.float64(known["lost"][:2]))
    assert (norm >= np.sqrt(20) * value).all()
    assert (norm <= lost).all()
