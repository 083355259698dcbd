// Functions of the compiled core. There is one `register_*.cpp` per concept; only the files of kernels/ call them.
#include <cstring>

#include "arithmetic.h"
#include "arrays.h"
#include "thread_pool.h"

#if defined(Py_GIL_DISABLED)
#error "cprime needs a Python with a global interpreter lock: calls from several threads are not tested without one"
#endif

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace {

unsigned long main_thread; // Python's identifier of the main thread

// Run Python's signal handlers, so that Ctrl-C ends a call. They run in the main thread alone. Other threads must not
// request the interpreter's lock during their work, because Python ends threads that do so while it shuts down.
void run_signal_handlers() {
    if (PyThread_get_thread_ident() != main_thread)
        return;
    const nanobind::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0)
        throw nanobind::python_error();
}

// Set the calling thread's floating-point mode, None for the standard one; return the previous mode.
nanobind::bytes exchange_arithmetic(std::optional<nanobind::bytes> wanted) {
    cprime::Arithmetic mode = cprime::arithmetic();
    const nanobind::bytes before(&mode, sizeof mode);
    cprime::require(!wanted || wanted->size() == sizeof mode, "arithmetic");
    if (!wanted) {
        cprime::set_standard_arithmetic();
    } else {
        std::memcpy(&mode, wanted->data(), sizeof mode);
        cprime::set_arithmetic(mode);
    }
    return before;
}

} // namespace

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernels of cprime; use cprime.kernels.";
    m.def("instruction_set", &cprime::instruction_set, "The instruction set in use.");
    m.def("exchange_arithmetic", &exchange_arithmetic, nanobind::arg().none());
    main_thread =
        nanobind::cast<unsigned long>(nanobind::module_::import_("threading").attr("main_thread")().attr("ident"));
#if !defined(_WIN32)
    pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });
#endif
    nanobind::set_leak_warnings(false); // no leak: another thread may use a model at exit
    cprime::set_poll(run_signal_handlers);
    cprime::register_nearest(m);
    cprime::register_bounds(m);
    cprime::register_distances(m);
    cprime::register_statistics(m);
    cprime::register_expect(m);
    cprime::register_local(m);
    cprime::register_line(m);
    cprime::register_transport(m);
    cprime::register_gaussians(m);
    cprime::register_factors(m);
    cprime::register_sparse(m);
    cprime::register_cells(m);
    cprime::register_jumps(m);
    cprime::register_many(m);
    cprime::register_stored(m);
}
