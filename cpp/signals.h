// Handling of Ctrl-C during long tasks.
#pragma once
#include "inlined.h"

namespace cprime {

// Run signal handlers if enough time has passed since the last call; to be called every few milliseconds within a task.
// Throws, to end the task, if a handler throws or another task of the same call has failed.
void answer_signals();

// Call answer_signals in every 4096th step of a loop; i counts the steps.
CPRIME_INLINED void answer_signals_at(unsigned long long i) {
    if (i % 4096 == 0)
        answer_signals();
}

} // namespace cprime
