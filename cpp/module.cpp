// The compiled core's table of contents. One `register_*.cpp` per concept; kernels/native.py is its only caller.
#include "arrays.h"
#include "thread_pool.h"

namespace {

// Lets Python's signal handlers run, so that Ctrl-C ends a call; of the main thread, as Python has it.
void run_signal_handlers() {
    const nanobind::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0)
        throw nanobind::python_error();
}

} // namespace

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernels of cprime; use cprime.kernels.";
    m.def("instruction_set", &cprime::instruction_set, "The instruction set in use: baseline, avx2 or avx512.");
    cprime::set_poll(run_signal_handlers);
    cprime::register_nearest(m);
    cprime::register_bounds(m);
    cprime::register_distances(m);
    cprime::register_statistics(m);
    cprime::register_expect(m);
    cprime::register_local(m);
    cprime::register_line(m);
    cprime::register_gaussians(m);
}
