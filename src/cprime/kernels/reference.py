"""NumPy twins of the compiled kernels: slow reference versions that are simple enough to verify by reading.

Each twin is defined next to the wrapper of its kernel and has the same arguments. It computes in float64, without
blocks or threads. The same contract tests are applied to both versions.

Equations in docstrings of kernels are those of Lücke & Forster 2019, "k-means as a variational EM approximation of
Gaussian mixture models" [L], Forster & Lücke 2018, "Can clustering scale sublinearly with its clusters?" [F], and
Bishop 2006, "Pattern Recognition and Machine Learning" [B].
"""

from types import SimpleNamespace
from typing import Any, ClassVar

from cprime.kernels.bounds import nearest_bounded_twin
from cprime.kernels.cells import CenterCellsTwin
from cprime.kernels.distances import (
    assign_by_parts,
    best_twin,
    distances_twin,
    extent_twin,
    potentials_twin,
    products_twin,
    spread_out_twin,
)
from cprime.kernels.exact import expect_all_twin, log_sum_exp_twin, posterior_twin, respond_twin
from cprime.kernels.factors import factor_costs_twin, factor_moments_twin, top_k_factors_twin
from cprime.kernels.jumps import jump_by_verbs
from cprime.kernels.line import cut_line_twin
from cprime.kernels.many import lloyd_many_twin, lloyd_twin, plus_plus_many_twin
from cprime.kernels.partial import best_in_lists_twin, changed_twin, reassign_twin, top_k_gaussians_twin
from cprime.kernels.rows import Dense, gather_twin, normalized_twin
from cprime.kernels.student_t_weights import scaled_responsibilities_twin
from cprime.kernels.sums import (
    accumulate_twin,
    along_twin,
    grouped_order_twin,
    means_twin,
    moments_twin,
)
from cprime.kernels.transport import assign_bounded_twin

TWINS: Any = SimpleNamespace(
    CenterCells32=CenterCellsTwin,
    CenterCells64=CenterCellsTwin,
    accumulate=accumulate_twin,
    along=along_twin,
    assign_bounded=assign_bounded_twin,
    best=best_twin,
    best_in_lists=best_in_lists_twin,
    changed=changed_twin,
    cut_line=cut_line_twin,
    distances=distances_twin,
    expect_all=expect_all_twin,
    extent=extent_twin,
    factor_costs=factor_costs_twin,
    factor_moments=factor_moments_twin,
    gather=gather_twin,
    grouped_order=grouped_order_twin,
    jump=lambda X, *rest: jump_by_verbs(Reference(X), *rest),
    top_k=lambda X, centers, *rest: top_k_gaussians_twin(X, centers, None, None, None, *rest),
    top_k_gaussians=top_k_gaussians_twin,
    top_k_factors=top_k_factors_twin,
    lloyd=lloyd_twin,
    lloyd_many=lloyd_many_twin,
    log_sum_exp=log_sum_exp_twin,
    means=means_twin,
    moments=moments_twin,
    nearest=lambda X, centers, hint, *rest: best_twin(X, centers, None, None, None, *rest),
    nearest_bounded=nearest_bounded_twin,
    normalized=normalized_twin,
    plus_plus_many=plus_plus_many_twin,
    posterior=posterior_twin,
    potentials=potentials_twin,
    products=products_twin,
    scaled_responsibilities=scaled_responsibilities_twin,
    reassign=reassign_twin,
    respond=respond_twin,
    spread_out=spread_out_twin,
    assign=lambda *call: assign_by_parts(TWINS, *call),
)


class Reference(Dense):
    """Rows of an array whose methods call the NumPy twins instead of compiled kernels."""

    kernels: ClassVar[Any] = TWINS
