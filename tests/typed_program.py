"""Program that uses each public class as a user would; a test checks it with type checkers and runs it."""

import io

import numpy as np

import cprime

X = cprime.datasets.clusters(300, 4, 2, random_state=0).data
km = cprime.KMeans(4, search=cprime.search.Full(), max_memory=cprime.Memory("1GB"), random_state=0).fit(X)
sizes: list[int] = np.bincount(km.labels_, minlength=4).tolist()
J: float = km.inertia_ + km.score(X) + float(km.transform(X).min())
centers = km.update(X).partial_fit(X).cluster_centers_.astype(np.float32)
nearest, distances = km.nearest(X)
far: float = float(distances.max()) + float(cprime.assign(X, centers)[1].max())
file = io.BytesIO()
km.save(file)
loaded = cprime.load(io.BytesIO(file.getvalue()), cprime.KMeans)
same: bool = bool((loaded.predict(X) == nearest).all()) and loaded.n_iter_ == km.n_iter_
gm = cprime.GaussianMixture(4, covariance_type=cprime.Factors(1), n_active=2, random_state=0).fit(X)
likelihood: float = gm.score(X) + 1.0 + gm.bic(X) + gm.lower_bound_ + cprime.combine([km, km]).inertia_
entries: int = gm.predict_proba(X, sparse=True).nnz + int(gm.predict_proba(X).argmax()) + gm.n_active_
drawn, components = gm.sample(5, random_state=0)
bounds: cprime.Bounds = gm.bounds(X)
given = cprime.GaussianMixture(2, random_state=0).fit(X).condition([0], X[:, :1])
expected: np.ndarray = (
    cprime.GaussianMixture(2, prior=cprime.Prior()).fit(cprime.Noisy(X, [0.1, 0.1])).impute(cprime.Noisy(X, [0.1, 0.1]))
)
assert isinstance(given, cprime.ConditionalMixtures)
tm = cprime.StudentTMixture(2, dof="shared", random_state=0).fit(X)
weights: float = float(tm.score_outliers(X).mean() + tm.dof_[0] + tm.means_.sum() + tm.weights_.sum())
bayesian = cprime.BayesianGaussianMixture(4, random_state=0).fit(X)
evidence: float = bayesian.lower_bound_ + bayesian.n_effective_ + float(bayesian.weight_concentration_.sum())
counts = np.abs(X.round()).astype(int)
rates: np.ndarray = cprime.PoissonMixture(2).fit(cprime.Exposed(np.ones((9, 2)), np.ones(9))).rates_
poisson = cprime.PoissonMixture(2, random_state=0).fit(counts).predict(counts)
categories = cprime.CategoricalMixture(2, random_state=0).fit(counts % 3).predict_proba(counts % 3).sum()
mixed = cprime.MixedMixture(2, columns=["diag"] * 2, random_state=0).fit(X).columns_[0].upper()
soft = cprime.SoftKMeans(2, random_state=0).fit(X).predict_proba(X, sparse=True).nnz
fuzzy = cprime.FuzzyKMeans(2, random_state=0).fit(X).predict_proba(X).shape[1] + soft
others = [cprime.KMedians(2), cprime.KMedoids(2), cprime.KMeans1D(2), cprime.XMeans(), cprime.GMeans()]
codes = cprime.ResidualKMeans(4, n_levels=2, random_state=0).fit(X).encode(X)
curves: np.ndarray = cprime.RegressionMixture(2, n_init=1, random_state=0).fit(X, X[:, 0]).predict_components(X)
classes: list[int] = cprime.MixtureClassifier(gm, n_components=1).fit(X, km.labels_).predict(X).tolist()
many: cprime.Many = cprime.fit_many(np.stack([X, X]), 3, random_state=0)
mixtures = cprime.fit_many(X, 2, groups=km.labels_, estimator=gm)[0].means_
plan: cprime.Plan = cprime.plan(km, X)
found = cprime.selection.sweep(cprime.KMeans(), X, range(2, 5), random_state=0)
curve: cprime.selection.InformationCurve = cprime.selection.information_curve(found, X)
best: int = found.best_n_components() + len(found.best().labels_)
read: int = cprime.open_data(X).n_features
lm = cprime.LaplaceMixture(2, random_state=0).fit(X)
directions = cprime.VonMisesFisherMixture(2, random_state=0).fit(X)
counted = cprime.PoissonMixture(2, random_state=0).fit(cprime.Exposed(np.abs(X).round(), np.ones(len(X))))
penalized: float = cprime.DPMeans(9.0).fit(X).objective_ + cprime.DPMeans(9.0).fit(X).n_clusters_
scales: float = float(np.mean(lm.scales_)) + float(directions.concentrations_.sum()) + float(counted.rates_.sum())
