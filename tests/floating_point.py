"""Floating-point modes of the calling thread, as other libraries may set them."""

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

X86 = platform.machine() in ("x86_64", "AMD64", "i686")
ARM = platform.machine() in ("aarch64", "arm64")

# bits of each mode in the control word: MXCSR on x86, FPCR on ARM
MODES = {
    "subnormals are zero": 0x8040 if X86 else 1 << 24,
    "rounded up": 0x4000 if X86 else 1 << 22,
    "rounded to zero": 0x6000 if X86 else 3 << 22,
}


def _place() -> slice:
    """Return the position of the control word in the structure fenv_t."""
    if sys.platform == "darwin":
        return slice(4, 8) if X86 else slice(8, 12)
    return slice(28, 32) if X86 else slice(0, 4)


def _environment() -> ctypes.Array:
    environment = ctypes.create_string_buffer(64)
    ctypes.CDLL(None).fegetenv(environment)
    return environment


def control_word() -> int:
    """Return this thread's control word, without the exception flags."""
    word = int.from_bytes(_environment().raw[_place()], "little")
    return word & ~0x3F if X86 else word


@contextmanager
def mode(name: str) -> Iterator[None]:
    """Set a floating-point mode of this thread within a `with` block."""
    if sys.platform == "win32" or not (X86 or ARM):
        pytest.skip("where fenv_t has the control word of this system and processor is not known here")
    before, changed = _environment(), _environment()
    place = _place()
    word = int.from_bytes(changed.raw[place], "little") | MODES[name]
    changed[place] = word.to_bytes(4, "little")
    libm = ctypes.CDLL(None)
    libm.fesetenv(changed)
    try:
        yield
    finally:
        libm.fesetenv(before)
