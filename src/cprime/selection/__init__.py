"""Choice of the number of clusters: criteria over a range of C, estimators that find C, merging; standard errors.

`sweep` fits a mixture or k-means for every C of a range, also with several covariance types (`families.py`), and
returns a `Sweep`, which `SelectionDisplay` draws.
`stability` compares fits to halves of the data, `information_curve` the terms of the partition loss on held-out rows;
`classification_table` clusters with known classes. `XMeans` and
`GMeans` split and merge clusters until a criterion or a test requires no further change; `DPMeans` opens clusters at
distant points. `merge` joins the components
of a fit and returns a `MergeTree`, which can be cut at any number of clusters. `bootstrap` and
`standard_errors` say how certain the parameters of a fit are; `likelihood_ratio_test` tests the number of components.
`MixtureClassifier` chooses a mixture for each class by `sweep`.
Criteria read a fit by its public methods; `merge` also by its model, if it has one.
"""

from cprime.selection.agreement import ClassificationTable, classification_table, purity
from cprime.selection.asymptotics import StandardErrors, standard_errors
from cprime.selection.bootstrap import Bootstrap, bootstrap
from cprime.selection.display import SelectionDisplay
from cprime.selection.dp_means import DPMeans
from cprime.selection.gmeans import GMeans
from cprime.selection.information import InformationCurve, information_curve
from cprime.selection.likelihood_ratio import LikelihoodRatioTest, likelihood_ratio_test
from cprime.selection.merging import MergeTree, merge
from cprime.selection.mixture_classifier import MixtureClassifier
from cprime.selection.results import Sweep
from cprime.selection.stability import Stability, stability
from cprime.selection.sweep import sweep
from cprime.selection.xmeans import XMeans

__all__ = [
    "Bootstrap",
    "ClassificationTable",
    "DPMeans",
    "GMeans",
    "InformationCurve",
    "LikelihoodRatioTest",
    "MergeTree",
    "MixtureClassifier",
    "SelectionDisplay",
    "Stability",
    "StandardErrors",
    "Sweep",
    "XMeans",
    "bootstrap",
    "classification_table",
    "information_curve",
    "likelihood_ratio_test",
    "merge",
    "purity",
    "stability",
    "standard_errors",
    "sweep",
]


def __dir__() -> list[str]:
    return __all__
