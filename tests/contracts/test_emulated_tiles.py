"""The matrix unit emulated in software: products follow the manual, and invalid instructions end the process."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CPP = Path(__file__).resolve().parents[2] / "cpp"
COMPILER = os.environ.get("CXX", "c++")
SOURCE = """
#include "halves.h"
namespace cprime::emulated {
extern "C" void product(const coarse *left, const coarse *right, float *out) {
    const CoarseUnit unit;
    _tile_loadd(0, out, 64);
    _tile_loadd(4, left, 64);
    _tile_loadd(6, right, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_stored(0, out, 64);
}
extern "C" void halves_of(const float *x, coarse *out) {
    __m512 numbers;
    std::memcpy(&numbers, x, sizeof numbers);
    const __m256i halves = _mm512_cvtneps_pbh(numbers);
    std::memcpy(out, &halves, sizeof halves);
}
extern "C" void without_a_unit() { _tile_zero(0); }
extern "C" void after_a_unit() {
    { const CoarseUnit unit; }
    _tile_zero(0);
}
extern "C" void product_with_itself() {
    const CoarseUnit unit;
    _tile_dpbf16ps(1, 1, 2);
}
}
"""


def runs_here():
    cpuinfo = Path("/proc/cpuinfo")
    return shutil.which(COMPILER) and cpuinfo.exists() and {"avx2", "fma"} <= set(cpuinfo.read_text().split())


pytestmark = pytest.mark.skipif(not runs_here(), reason="needs a compiler and a processor of AVX2")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiles") / "tiles.so"
    options = ["-std=c++20", "-O1", "-mavx2", "-mfma", "-Wno-psabi", "-shared", "-fPIC", f"-I{CPP}", "-x", "c++", "-"]
    names = ["-DCPRIME_ISA=emulated", "-DCPRIME_EMULATE_AVX512", "-DCPRIME_EMULATE_AMX"]
    subprocess.run([COMPILER, *names, "-o", path, *options], input=SOURCE, text=True, check=True)
    return path


def pointer(array):
    assert array.flags.c_contiguous
    return array.ctypes.data_as(ctypes.c_void_p)


def halves(numbers):
    """Convert numbers that bfloat16 can represent to the 16 bits of bfloat16."""
    bits = np.asarray(numbers, dtype=np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype(np.uint16)


def product(library, left, right, onto):
    """Return onto + left (16, 32) @ right (32, 16), computed by emulated tiles."""
    pairs = halves(right).reshape(16, 2, 16).transpose(0, 2, 1)
    out = np.ascontiguousarray(onto, dtype=np.float32)
    arguments = [np.ascontiguousarray(halves(left)), np.ascontiguousarray(pairs), out]
    ctypes.CDLL(library).product(*map(pointer, arguments))
    return out


def test_products_of_whole_numbers_are_exact(library):
    rng = np.random.default_rng(0)
    left, right = rng.integers(-128, 129, (16, 32)), rng.integers(-128, 129, (32, 16))
    onto = rng.integers(-1000, 1000, (16, 16))
    np.testing.assert_array_equal(product(library, left, right, onto), onto + left @ right)


def test_even_and_odd_numbers_are_summed_apart(library):
    """Products at even and odd positions have separate sums: one sum of 2²⁴ and ones would remain at 2²⁴."""
    left, right = np.ones((16, 32)), np.zeros((32, 16))
    right[0], right[2:] = 2.0**24, 1
    np.testing.assert_array_equal(product(library, left, right, np.zeros((16, 16))), 2.0**24 + 16)


def test_subnormal_numbers_are_zeros(library):
    tiny, small = 2.0**-130, 2.0**-70
    left, right = np.zeros((16, 32)), np.zeros((32, 16))
    left[:, 0], right[0] = tiny, 2.0**100
    assert not product(library, left, right, np.zeros((16, 16))).any(), "of a factor"
    left[:, 0], right[0] = small, small
    assert not product(library, left, right, np.zeros((16, 16))).any(), "of a product"
    assert not product(library, np.zeros((16, 32)), right, np.full((16, 16), tiny)).any(), "of what is added to"


def test_what_overflows_is_infinite(library):
    left, right = np.zeros((16, 32)), np.zeros((32, 16))
    left[:, 3], right[3] = 2.0**100, 2.0**100
    assert (product(library, left, right, np.zeros((16, 16))) == np.inf).all()
    assert np.isnan(product(library, left, right, np.full((16, 16), -np.inf))).all()


def test_numbers_are_rounded_to_even_halves(library):
    step = 2.0**-7  # distance of bfloat16 numbers at 1
    given = [
        1,
        1 + step / 2,
        1 + 3 * step / 2,
        1 + 0.51 * step,
        -1 - step / 2,
        3.4e38,
        np.inf,
        2.0**-130,
        -0.0,
        *7 * [5],
    ]
    expected = [1, 1, 1 + 2 * step, 1 + step, -1, np.inf, np.inf, 0, -0.0, *7 * [5]]
    out = np.empty(16, dtype=np.uint16)
    ctypes.CDLL(library).halves_of(pointer(np.array(given, dtype=np.float32)), pointer(out))
    np.testing.assert_array_equal(out, halves(expected))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("without_a_unit", "without a configuration"),
        ("after_a_unit", "without a configuration"),
        ("product_with_itself", "a tile and itself"),
    ],
)
def test_what_would_raise_an_exception_ends_the_process(library, name, message):
    command = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(library)!r}).{name}()"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode != 0
    assert message in result.stderr
