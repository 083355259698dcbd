// Coarse (low-precision) numbers of the instruction set for which this file is compiled, if it multiplies such numbers.
#pragma once
#include "coarse_tiles.h"
#if defined(CPRIME_HALVES)
#include "halves.h"
#elif defined(CPRIME_BYTES)
#include "bytes.h"
#endif
