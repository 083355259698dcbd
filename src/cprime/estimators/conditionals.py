"""What a fitted mixture says of some columns: alone, or once the others are known."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from cprime.estimators.columns import Columns, resolve_columns, some_columns
from cprime.estimators.conditional_mixtures import ConditionalMixtures, regressed
from cprime.estimators.quality import say_truncated
from cprime.estimators.validation import check_flag
from cprime.execution import Data
from cprime.kernels import Dense, Rows, computing
from cprime.model import Model
from cprime.model.conditional import Conditional, others
from cprime.sources import is_source_like

_OF_THE_FIT = ("weights_init", "means_init", "precisions_init", "checkpoint", "spill", "max_memory", "callbacks")


def _dense(X: Rows) -> NDArray:
    return X.dense()


class Conditionals:
    """Mixin of mixtures."""

    n_active: int | str | None
    n_active_: int
    n_threads: int | None
    random_state: Any
    means_: NDArray
    _set_model: Any

    def _parameters(self) -> Model:
        raise NotImplementedError

    def marginal(self, columns: Any) -> Any:
        """The mixture of some columns: their joint density, whatever the others are.

        Parameters
        ----------
        columns : int, str, sequence of these, or mask
            Numbers, negative ones from the end, names where the data of the fit had names, or a mask.

        Returns
        -------
        mixture : GaussianMixture, or StudentTMixture of one
            Of these columns in this order, with as many components: it predicts, scores and samples, and can be saved.
            What a fit says of its course, `labels_` and `history_` for example, it does not have.

        Raises
        ------
        ValueError
            If columns are unknown, come twice, or are none.

        Examples
        --------
        >>> import numpy as np
        >>> from cprime import GaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(100, 3)) + [1, 5, 10]
        >>> gm = GaussianMixture(1).fit(X)
        >>> gm.marginal([2, 0]).means_.round().tolist()
        [[10.0, 1.0]]
        """
        check_is_fitted(self)
        with computing(self.n_threads):
            model = self._parameters()
            chosen = resolve_columns(columns, model.n_features, self._names())
            return self._mixture(model.marginal(chosen), chosen)

    def condition(self, columns: Any, values: Any = None) -> Any:
        """Return the mixture of the other columns, given values of these.

        It has the weights π_c N(x_o; μ_o, Σ_oo) over their sum, the means μ_m + Σ_mo Σ_oo⁻¹ (x_o − μ_o) and the
        covariances Σ_mm − Σ_mo Σ_oo⁻¹ Σ_om, o being the given columns and m the others. Of factor analysers it is one
        too: no D × D matrix is made.

        Parameters
        ----------
        columns : int, str, sequence of these, mask, or dict
            Numbers, negative ones from the end, names where the data of the fit had names, or a mask. A dict has the
            value of each column: ``condition({"width": 3.5, "height": 2.0})``.
        values : array-like of shape (k,), or data of shape (n, k), default=None
            A row of these columns, or many; these may be whole rows too, whose other columns are ignored, and of any
            kind that `predict` takes. It is left out if `columns` is a dict.

        Returns
        -------
        mixture : GaussianMixture or ConditionalMixtures
            For one row a mixture of all components as `marginal` gives it; its weights are free. For many rows what has
            a mean, a covariance, samples and quantiles for each, of the `n_active_` components that the row keeps.

        Raises
        ------
        ValueError
            If columns are unknown, come twice, are none or all, or values are not of their number, or missing: what is
            known need not be the same of all rows for `GaussianMixture.impute`.

        Examples
        --------
        >>> import numpy as np
        >>> from cprime import GaussianMixture
        >>> gm = GaussianMixture(2)
        >>> gm.weights_, gm.means_ = np.array([0.5, 0.5]), np.array([[0.0, 1.0], [2.0, -1.0]])
        >>> gm.covariances_ = np.array([[[0.5, -1.0], [-1.0, 5.0]], [[5.0, 1.0], [1.0, 0.5]]])
        >>> given = gm.condition([1], [1.0])
        >>> given.means_.round(3).tolist(), given.covariances_.round(3).tolist()
        ([[0.0], [6.0]], [[[0.3]], [[3.0]]])
        >>> gm.condition([1], [[1.0], [-1.0]]).mean().shape
        (2, 1)
        """
        if isinstance(columns, Mapping):
            if values is not None:
                raise ValueError("values must be left out if columns is a dict, which has the values.")
            columns, values = list(columns), list(columns.values())
        elif values is None:
            raise ValueError("values must be given, unless columns is a dict of columns and their values.")
        known, conditional = self._conditional(columns)
        single = not is_source_like(values) and np.ndim(values) < 2
        if single and np.size(values) != len(known):
            raise ValueError(
                f"values must be {len(known)}, one for each of the columns, or rows of them, got {np.size(values)}."
            )
        if single:
            values = check_array(np.reshape(values, (1, -1)), dtype="numeric", input_name="values")
        given, left = conditional.given, conditional.left
        data = self._given_columns(values, given, known, "values")
        with computing(self.n_threads):
            X = Dense(np.asarray(data.map(_dense, len(known), given.centers.dtype)))
            if not single:
                self._say_truncated("condition")
                return ConditionalMixtures(conditional, self.n_active_, X, self.n_threads, self.random_state)
            model = conditional.of(X.dense()[0], given.responsibilities(X)[0])
            return self._mixture(model, others(known, given.n_features + left.n_features))

    def regress(self, X: Any, columns: Any, return_std: bool = False) -> Any:
        """The mean of the other columns given these, for every row: the least-squares regression of the mixture.

        E[x_m | x_o] = Σ_c q_c (μ_m + Σ_mo Σ_oo⁻¹ (x_o − μ_o)), q being the posterior given the columns o, of the
        `n_active_` components that a row keeps.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, k), or a source
            Whole rows, of which the other columns are ignored, or the k given columns alone. Columns are found by their
            names where both the data and those of the fit have names.
        columns : int, str, sequence of these, or mask
            Numbers, negative ones from the end, names where the data of the fit had names, or a mask.
        return_std : bool, default=False
            Whether to return standard deviations as well.

        Returns
        -------
        means : ndarray of shape (n_samples, M)
            Of the M other columns in their order, in the dtype and the units of `means_`.
        deviations : ndarray of shape (n_samples, M)
            Standard deviations of x_m given x_o, if asked for.

        Raises
        ------
        ValueError
            If columns are unknown, come twice, are none or all, or X has neither as many nor all, or lacks values in
            these columns: what is known need not be the same of all rows for `GaussianMixture.impute`.

        References
        ----------
        Ghahramani & Jordan, *Supervised learning from incomplete data via an EM approach*.

        Examples
        --------
        >>> import numpy as np
        >>> from cprime import GaussianMixture
        >>> x = np.linspace(-1, 1, 200)
        >>> gm = GaussianMixture(8, random_state=0).fit(np.column_stack([x, x**2]))
        >>> bool(abs(gm.regress([[0.5]], columns=[0])[0, 0] - 0.25) < 0.02)
        True
        """
        return_std = check_flag(return_std, "return_std")
        known, conditional = self._conditional(columns)
        data, M = self._given_columns(X, conditional.given, known, "X"), conditional.left.n_features
        self._say_truncated("regress")
        job = partial(regressed, conditional, self.n_active_, return_std)
        with computing(self.n_threads):
            found = data.map(job, 2 * M if return_std else M, conditional.left.centers.dtype)
        return (found[:, :M], found[:, M:]) if return_std else found

    def _conditional(self, columns: Any) -> tuple[Columns, Conditional]:
        """The numbers of the given columns, and what components say of the others once these are known."""
        check_is_fitted(self)
        with computing(self.n_threads):
            model = self._parameters()
            known = resolve_columns(columns, model.n_features, self._names())
            if len(known) == model.n_features:
                raise ValueError(f"columns must leave at least one of the {model.n_features} features, got all.")
            return known, model.conditional(known)

    def _given_columns(self, X: Any, given: Model, columns: Columns, name: str) -> Data:
        """Some columns of data of any kind, as the mixture of these takes them."""
        n_features = np.shape(self.means_)[1]
        mixture = self._mixture(given, columns)
        if getattr(mixture, "missing", "error") != "error":
            mixture.missing = "error"  # the covariances of what is left are those given all of these columns
        return mixture._opened(some_columns(X, columns, n_features, self._names(), name))

    def _say_truncated(self, method: str) -> None:
        C = len(self.means_)
        if self.n_active_ < C and self.n_active == "auto":
            say_truncated(method, self.n_active_, C)

    def _names(self) -> NDArray | None:
        return getattr(self, "feature_names_in_", None)

    def _mixture(self, model: Model, columns: Columns) -> Any:
        """A fitted mixture of these parameters, of such columns of the data."""
        estimator: Any = self
        params = estimator.get_params(deep=False)
        params |= {name: None for name in _OF_THE_FIT if name in params}
        params |= {"n_components": model.n_components, "weights": "equal" if model.weights is None else "free"}
        params |= {name: getattr(model, name) for name in type(model).followed_options}
        if not isinstance(params["init_params"], str):
            params["init_params"] = "auto"
        derived = type(estimator)(**params)
        derived._set_model(model, self.n_active_)
        derived.n_features_in_ = len(columns)
        names = self._names()
        if names is not None:
            derived.feature_names_in_ = names[columns]
        if hasattr(self, "preparation_"):
            derived.preparation_ = {
                name: None if values is None else values[columns] for name, values in self.preparation_.items()
            }
        return derived
