// Ctrl-C within long tasks.
#pragma once
#include "inlined.h"

namespace cprime {

// To be called every few milliseconds within a task: lets signal handlers run if it is time, and throws, as one of them
// does, to end the task; or because another task of the same call has failed.
void answer_signals();

// The same once in a few thousand steps, that i counts.
CPRIME_INLINED void answer_signals_at(unsigned long long i) {
    if (i % 4096 == 0)
        answer_signals();
}

} // namespace cprime
