// Program that prints the best instruction set of this processor, for a build of its kernels alone (CPRIME_NATIVE).
#include <cstdio>

#include "processor.h"

int main() { std::puts(cprime::ISA_NAMES[static_cast<int>(cprime::isa_of_processor())]); }
