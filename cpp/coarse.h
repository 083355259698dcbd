// Coarse (low-precision) numbers of this instruction set, if it has any.
#pragma once
#include "coarse_tiles.h"
#if defined(CPRIME_HALVES)
#include "halves.h"
#elif defined(CPRIME_BYTES)
#include "bytes.h"
#endif
