"""Values of the argument `covariance_type` of mixtures: names of model families, and `Factors` with its options."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cprime._utils.arguments import check_choice, check_flag, check_integer
from cprime._utils.storable import storable
from cprime._utils.values import Options
from cprime.model import Model


@storable("covariance.Factors")
@dataclass(frozen=True, repr=False)
class Factors(Options):
    """Covariances ΛΛᵀ + Ψ of factor analyzers, for data with many features: a value of `covariance_type`.

    Parameters
    ----------
    n_factors : int or "auto", default="auto"
        H, the number of factors of a component (columns of its loadings Λ), less than the number of features. "auto" is
        5, or one less than the number of features.
    isotropic : bool, default=False
        Whether all features of a component have the same noise variance in Ψ. `Factors()` is the covariance_type
        "factors", and `Factors(isotropic=True)` is "ppca", probabilistic principal components.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import Factors, GaussianMixture
    >>> X = np.random.default_rng(0).standard_normal((100, 6))
    >>> gm = GaussianMixture(2, covariance_type=Factors(3), random_state=0).fit(X)
    >>> gm.factors_.shape
    (2, 6, 3)
    >>> gm.set_params(covariance_type__n_factors=2).covariance_type
    Factors(n_factors=2)
    """

    n_factors: int | str = "auto"
    isotropic: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.n_factors, str):
            check_choice(self.n_factors, "n_factors", ("auto",))
        else:
            check_integer(self.n_factors, "n_factors", 0)
        check_flag(self.isotropic, "isotropic")

    @property
    def family(self) -> str:
        return "ppca" if self.isotropic else "factors"


# mclust's names of the covariance families Σ_c = λ_c D_c A_c D_cᵀ of Celeux & Govaert (1995), in mclust's order. The
# letters are of volumes λ, shapes A and orientations D: equal (E), variable (V), or those of identity matrices (I).
MCLUST_FAMILIES = (
    *("EII", "VII", "EEI", "VEI", "EVI", "VVI"),
    *("EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV"),
)
# Model families that have a name of their own, by mclust's name.
MCLUST_ALIASES = {
    "EII": "tied_spherical",
    "VII": "spherical",
    "EEI": "tied_diag",
    "VVI": "diag",
    "EEE": "tied",
    "VVV": "full",
}
_SHORT = {value.family: value for value in (Factors(), Factors(isotropic=True))}


def as_covariances(value: Any) -> Any:
    """Return an argument `covariance_type` with "factors" and "ppca" as objects of class `Factors`."""
    return _SHORT.get(value, value) if isinstance(value, str) else value


def family_of(value: Any) -> Any:
    """Return the name of the model family that an argument `covariance_type` means; other values are unchanged."""
    if isinstance(value, str):
        return MCLUST_ALIASES.get(value, value)
    return value.family if isinstance(value, Factors) else value


def check_family(value: Any, families: Iterable[str]) -> str:
    """Return the name of the model family that an argument `covariance_type` means; ValueError unless in `families`."""
    names = tuple(families)
    aliases = (alias for alias, name in MCLUST_ALIASES.items() if name in names)
    check_choice(value.family if isinstance(value, Factors) else value, "covariance_type", (*names, *aliases))
    return str(family_of(value))


def covariances_of(model: Model) -> str | Factors:
    """Return the argument `covariance_type` with which a fit has components like those of `model`."""
    covariances = as_covariances(model.covariance_type)
    if isinstance(covariances, Factors):
        return covariances.with_params(n_factors=model.n_factors)  # type: ignore[attr-defined]
    return model.covariance_type
