"""Every kernel as a function of arrays or rows, in its compiled and its NumPy reference implementation."""

from types import ModuleType

from cprime import kernels
from cprime.kernels import CenterCells, Dense, SparseRows, rows
from reference import KERNELS, Reference

ROWLESS = (
    "posterior",
    "scaled_responsibilities",
    "potentials",
    "means",
    "grouped_order",
    "changed",
    "cut_line",
    "assign_bounded",
)


def calls(kind, table):
    """Return a module of the kernels as functions, such as `nearest(X, centers, ...)`.

    Those with rows X convert them to the class `kind`; those without rows are called with `kernels=table`.
    """
    module = ModuleType(kind.__name__.lower())

    def verb(name):
        return lambda X, *args, **kwargs: getattr(X if isinstance(X, SparseRows) else kind(X), name)(*args, **kwargs)

    def rowless(name):
        return lambda *args, **kwargs: getattr(kernels, name)(*args, kernels=table, **kwargs)

    def cells(*args, **kwargs):
        return CenterCells(*args, kernels=table, **kwargs)

    for name in VERBS:
        setattr(module, name, verb(name))
    for name in ROWLESS:
        setattr(module, name, rowless(name))

    def gather(X, order_, n_threads=None):
        return rows.gather(kind(X), order_, n_threads=n_threads)

    def normalized(X, order_=None, n_threads=None):
        return rows.normalized(kind(X), order_, n_threads=n_threads)

    module.gather, module.normalized = gather, normalized
    module.CenterCells = cells
    module.__getattr__ = lambda name: getattr(kernels, name)
    return module


ABSTRACT = kernels.Rows.__abstractmethods__
VERBS = tuple(name for name, value in vars(kernels.Rows).items() if callable(value) and name[0] != "_")
VERBS = tuple(name for name in VERBS if name not in ABSTRACT)
VERBS += ("projected", "principal")
native = calls(Dense, Dense.kernels)
reference = calls(Reference, KERNELS)
