// Guard for the duration of a computation that is called from Python.
#pragma once
#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

#include "arithmetic.h"

namespace cprime {

// While an instance exists, the interpreter's lock is released, so other threads can run Python, and this thread
// computes in standard arithmetic.
//
// The destructor takes the lock back. If the interpreter has ended by then, which happens in daemon threads, Python
// before 3.14 ends the thread at this point, on some systems by unwinding its stack. Destructors must not be unwound,
// so such a thread sleeps until the process ends. Python itself does so from 3.14 on.
class KernelCall {
  public:
    KernelCall() : state_(PyEval_SaveThread()) {}
    ~KernelCall() {
        try {
            PyEval_RestoreThread(state_);
        } catch (...) {
            for (;;)
                std::this_thread::sleep_for(std::chrono::hours(1));
        }
    }
    KernelCall(const KernelCall &) = delete;
    KernelCall &operator=(const KernelCall &) = delete;

  private:
    StandardArithmetic standard_;
    PyThreadState *state_;
};

} // namespace cprime
