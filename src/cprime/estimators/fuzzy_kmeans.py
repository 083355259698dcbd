"""Fuzzy k-means with graded memberships: fuzzy c-means (Bezdek), and its entropy-regularized form (Miyamoto)."""

import math
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.declared import Columns, Number, Positive, Presence
from cprime._utils.random import check_random_state
from cprime.em import fuzzy
from cprime.estimators.prototypes import FuzzyBase
from cprime.estimators.validation import (
    check_choice,
    check_loop,
    check_n_active,
    check_real,
    check_weights,
    check_word_or_positive,
)
from cprime.estimators.watching import CallbackSupportMixin, Watch, restore_on_error, unfitted_copy, with_callbacks
from cprime.execution.block import Block
from cprime.persistence import model_files
from cprime.seeding import is_given, start

# exp(x) is finite, and exp(−x) positive, in float64 for x up to this number, which limits the fuzzifier m.
_LARGEST_EXPONENT = 700.0


@model_files.register
class FuzzyKMeans(CallbackSupportMixin, FuzzyBase):
    """Fuzzy k-means: memberships u_nc between 0 and 1, centers μ_c = Σ_n w_n u_nc^m x_n / Σ_n w_n u_nc^m.

    The w_n are weights of points, and the memberships of a point sum to 1. The argument `regularizer` selects one of
    three objectives. The default is J_m = Σ_n w_n Σ_c u_nc^m ‖x_n − μ_c‖², for which the best memberships are
    u_nc ∝ ‖x_n − μ_c‖^(−2/(m−1)).

    With regularizer="entropy", m is 1, and the fit decreases
    J_λ = Σ_n w_n Σ_c (u_nc ‖x_n − μ_c‖² + λ u_nc log u_nc). The best memberships are u_nc ∝ exp(−‖x_n − μ_c‖²/λ), as in
    the isotropic mixture of variance σ² = λ/2 and in `SoftKMeans` with stiffness 1/λ. With the total weight W, its free
    energy is F = −log C − (D/2) log 2πσ² − J_λ/(λW). If σ² is the variance estimated by `GaussianMixture`
    (covariance_type="tied_spherical", weights="equal"), the means of this mixture also solve this problem.

    With regularizer="quadratic", m is 1, and the fit decreases
    J_λ = Σ_n w_n Σ_c (u_nc ‖x_n − μ_c‖² − λ/2 u_nc (1 − u_nc)). The best memberships are
    u_nc = max(0, (ρ_n − ‖x_n − μ_c‖²)/λ), where ρ_n is the number for which those of point n sum to 1. So u_nc is
    exactly 0 in clusters whose squared distance exceeds the least one by λ or more.

    Parameters
    ----------
    n_clusters : int, default=8
    m : float, default=2.0
        The exponent, > 1. The limit m → 1 is k-means; memberships become more equal as m grows. Not used with
        a regularizer.
    regularizer : {"entropy", "quadratic"} or None, default=None
        None selects Bezdek's objective J_m; the two others select J_λ with the term of that name.
    regularization : float or "auto", default="auto"
        λ of the regularizer, in data unit²; 2σ² for "entropy". "auto" is 2 J/(DN), where J is the sum of squared
        distances of the points to the nearest starting centers, eq. (14) of Lücke & Forster.
    n_active : int or None, default=None
        C′, the number of clusters to which a point belongs: those of the nearest centers. Its other memberships are
        exactly 0. None is C.
    init : {"k-means++", "auto", "random", "afk-mc2", "two-level"}, array-like, fitted estimator or callable
        Initialization, as in `KMeans`; default "k-means++", which "auto" means, too.
    n_init : int, default=1
        Number of starts; the result of least objective is returned. Given centers are used for one start only. With
        regularization="auto", all starts use the λ of the first one.
    max_iter : int, default=300
    tol : float, default=1e-4
        A start has converged if the objective changes by no more than this share of Σ_n w_n Σ_c u_nc^m ‖x_n − μ_c‖².
    callbacks : callback or sequence of them, default=None
    n_threads : int or None, default=None
    random_state : int, RandomState, Generator or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,), int32
        The nearest center of each training point; its membership is the greatest.
    objective_ : float
        J_m or J_λ of the returned centers, in data unit².
    objectives_ : list of float
        The objective at each iteration; it never rises.
    inertia_ : float
    m_ : float
        The exponent that was used: 1 with a regularizer.
    regularizer_ : {"entropy", "quadratic"} or None
        The regularizer that was used.
    regularization_ : float or None
        The λ that was used, in data unit²; None without a regularizer.
    n_active_ : int
        The C′ that was used.
    n_iter_ : int
    converged_ : bool
    history_ : structured ndarray of shape (`n_iter_`,)
        One row per iteration: objective, n_distances, seconds.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    A point at the position of a center belongs to its cluster alone, or in equal parts to those of all centers at this
    position. A center that starts at a point could therefore not move. So, unless centers are given, the fit of J_m
    starts from the means of the points nearest to each of the initial centers.

    Memberships are computed for some rows at a time and not stored; `predict_proba` returns them. Every iteration
    computes all N·C distances.

    References
    ----------
    Bezdek, *Pattern Recognition with Fuzzy Objective Function Algorithms*, 1981.
    Miyamoto & Mukaidono, *Fuzzy c-means as a regularization and maximum entropy approach*, 1997.
    Miyamoto & Umayahara, *Fuzzy clustering by quadratic regularization*, 1998.
    Miyamoto, Ichihashi & Honda, *Algorithms for Fuzzy Clustering*, 2008, chapter 2.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import FuzzyKMeans
    >>> X = np.array([[0.0], [2.0], [9.0], [11.0]])
    >>> fuzzy = FuzzyKMeans(2, init=[[0.0], [11.0]]).fit(X)
    >>> fuzzy.predict_proba([[5.5], [1.0]]).round(2).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """

    m_: Annotated[float, Number(least=1)]
    regularizer_: Annotated[
        str | None,
        lambda value, sizes: value in (None, *fuzzy.REGULARIZED),
        Presence.OPTIONAL,
    ]
    regularization_: Positive | None
    objective_: float
    objectives_: Annotated[list[float], Presence.RECORD]
    history_: Annotated[NDArray, Columns(fuzzy.HISTORY), Presence.RECORD]

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        m: float = 2.0,
        regularizer: str | None = None,
        regularization: float | str = "auto",
        n_active: int | None = None,
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        callbacks: Any = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.m = m
        self.regularizer = regularizer
        self.regularization = regularization
        self.n_active = n_active
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.callbacks = callbacks
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    @restore_on_error
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute the centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers. Rows of the narrow types uint8, int8, bool, float16 and bfloat16 are not converted as a
            whole; the computation uses float32. 16-bit integers and float32 become float32, wider types float64. A
            C-contiguous array or memory map is not copied.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the point twice; None is 1 for each.

        Returns
        -------
        self : FuzzyKMeans

        Raises
        ------
        ValueError
            If an argument is out of its range, or there are fewer points than clusters.
        """
        C = check_loop(self)
        n_active = check_n_active(self.n_active, C)
        tol = check_real(self.tol, "tol", 0.0)
        rule = self._given_rule(n_active)
        watch = Watch(self, (X, y, sample_weight), lambda fit: unfitted_copy(self)._set_run(fit, n_active))
        X = self._validated(X, reset=True)
        weights = check_weights(sample_weight, X.given())
        random_state = check_random_state(self.random_state)
        options: dict[str, Any] = {"sample_weight": weights, "n_threads": self.n_threads}

        def run(callback: Any) -> tuple[float, bool, fuzzy.FuzzyRun]:
            nonlocal rule
            begin = start(X, C, self.init, random_state=random_state, **options).centers
            if isinstance(rule, fuzzy.Power) and not is_given(self.init):
                begin = fuzzy.off_the_points(X, begin, weights, self.n_threads)
            if rule is None:  # λ is estimated from the centers of the first start, and kept for all others.
                constant = fuzzy.constant_of_start(X, begin, weights, self.n_threads)
                rule = fuzzy.REGULARIZED[str(self.regularizer)](constant)
            given: dict[str, Any] = {"n_active": n_active, "max_iter": self.max_iter, "tol": tol, "callback": callback}
            fit = fuzzy.run(X, begin, rule, **given, **options)
            return fit.objective, fit.stopped, fit

        best = watch.best_of(1 if is_given(self.init) else self.n_init, self.max_iter, run)
        self._set_run(best, n_active)
        labels, squared = X.nearest(best.centers, n_threads=self.n_threads)
        self.labels_ = labels[:, 0]
        self.inertia_ = Block(X, weights).weighted_sum(squared[:, 0])
        self.objective_ = best.objective
        return self

    def _set_run(self, fit: fuzzy.FuzzyRun, n_active: int) -> Self:
        """Set the fitted attributes from `fit`, the present state of one start, and return the estimator.

        n_active: C′, the number of clusters to which a point belongs
        """
        self.cluster_centers_ = fit.centers
        self.m_ = fit.rule.m if isinstance(fit.rule, fuzzy.Power) else 1.0
        self.regularization_ = getattr(fit.rule, "constant", None)
        self.regularizer_ = next((name for name, kind in fuzzy.REGULARIZED.items() if type(fit.rule) is kind), None)
        self.n_active_ = n_active
        self.history_ = np.array(list(fit.history), dtype=fuzzy.HISTORY)
        self.objectives_ = self.history_["objective"].tolist()
        self.converged_ = fit.converged
        self.n_iter_ = len(fit.history)
        return self

    def _given_rule(self, n_active: int) -> fuzzy.Rule | None:
        """Return the rule that computes memberships from squared distances, according to the constructor arguments.

        Returns None if the constant λ of the rule must first be estimated from the starting centers.
        n_active: C′, the number of clusters of a point. Raises ValueError if the exponent m is so large that C′^−m
        would be 0.
        """
        m = check_real(self.m, "m", 1.0)
        constant = check_word_or_positive(self.regularization, "regularization", "auto")
        if self.regularizer is not None:
            check_choice(self.regularizer, "regularizer", tuple(fuzzy.REGULARIZED))
            return None if constant is None else fuzzy.REGULARIZED[str(self.regularizer)](constant)
        largest = _LARGEST_EXPONENT / math.log(max(n_active, 2))
        if not 1 < m <= largest:
            raise ValueError(f"m must be > 1 and, so that C′^−m is a number, at most {largest:.0f}, got {m}.")
        return fuzzy.Power(m)

    def _rule(self) -> fuzzy.Rule:
        if self.regularization_ is None:
            return fuzzy.Power(self.m_)
        name = getattr(self, "regularizer_", "entropy")  # model files of version 0.1 have no such attribute
        return fuzzy.REGULARIZED[name](self.regularization_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective (J_m or J_λ) of the data for the fitted centers, in data unit².

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        X = self._validated(X, reset=False)
        weights = check_weights(sample_weight, X.given())
        found = fuzzy.expect(X, self.cluster_centers_, self._rule(), self.n_active_, weights, self.n_threads)
        return -found.objective
