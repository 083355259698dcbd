// What holds while a call from Python computes.
#pragma once
#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

#include "arithmetic.h"

namespace cprime {

// While it lives other threads run Python, and this one computes in standard arithmetic.
//
// At the end it takes the interpreter's lock back. Where the interpreter has ended by then, for this is a daemon
// thread, Python before 3.14 ends the thread there, by unwinding its stack where the system does so. No destructor may
// be unwound: such a thread sleeps until the process is gone, as Python has it from 3.14 on.
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
