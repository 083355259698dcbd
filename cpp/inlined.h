// Functions that code of several instruction sets shares. Each set makes other code of an inline function, of which the
// linker keeps one for all; so these are inlined wherever they are called, optimised or not, and there is none to keep.
#pragma once

#define CPRIME_INLINED [[gnu::always_inline]] inline
