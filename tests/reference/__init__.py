"""Slow versions of the compiled kernels in NumPy, simple enough to verify by reading.

Each has the name and the arguments of its kernel. It computes in float64, without blocks or threads. The tests in
`tests/contracts` are applied to both versions. `Reference` has rows of an array, whose methods call these versions.

Equations in docstrings of kernels are those of Lücke & Forster 2019, "k-means as a variational EM approximation of
Gaussian mixture models" [L], Forster & Lücke 2018, "Can clustering scale sublinearly with its clusters?" [F], and
Bishop 2006, "Pattern Recognition and Machine Learning" [B].
"""

from types import SimpleNamespace

from cprime.kernels import Dense
from reference import distances, expectation, jumps, lists, many, sums, transport

KERNELS = SimpleNamespace(
    **{
        name: function
        for module in (distances, expectation, lists, many, sums, transport)
        for name, function in vars(module).items()
        if name[0] != "_" and hasattr(Dense.kernels, name)
    },
    CenterCells32=distances.CenterCells,
    CenterCells64=distances.CenterCells,
    jump=lambda X, *rest: jumps.jump(Reference(X), *rest),
    nearest=lambda X, centers, hint, *rest: distances.best(X, centers, None, None, None, *rest),
    top_k=lambda X, centers, *rest: lists.top_k_gaussians(X, centers, None, None, None, *rest),
)


class Reference(Dense):
    """Rows of an array whose methods call the functions of this package instead of compiled kernels."""

    kernels = KERNELS
