// Attribute for functions that the code of several instruction sets shares. Each instruction set compiles an inline
// function differently, and the linker would keep one version for all. These functions are therefore always inlined,
// even without optimization, so that there is no version to keep.
#pragma once

#define CPRIME_INLINED [[gnu::always_inline]] inline
