"""
Classes of any shape
====================

Quadratic discriminant analysis describes each class by one Gaussian.
`MixtureClassifier` gives each class a mixture, so a class may have several clusters, or
a shape that no Gaussian has. If one Gaussian is right, BIC chooses one. Here two
classes wind around each other, and a third one is a plain Gaussian.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from cprime import MixtureClassifier

plt.style.use("cprime.style")
rng = np.random.default_rng(0)

# %%
# Two spirals and a cluster
# -------------------------


def spiral(n, begin):
    """Return n noisy points along one turn of a spiral; begin is in turns."""
    t = np.sqrt(rng.uniform(0.02, 1, n))
    angle, radius = 2 * np.pi * (begin + t), 0.5 + 3.5 * t
    line = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return line + rng.normal(scale=0.2, size=(n, 2))


parts = [spiral(400, 0.0), spiral(400, 0.5), rng.normal([6.5, -2.5], 0.6, (200, 2))]
X, y = np.vstack(parts), np.repeat(["one", "other", "cluster"], [400, 400, 200])

# %%
# One Gaussian for each class, or a mixture
# -----------------------------------------
# BIC chooses the number of components of each class from 1 to 8. Half of the points
# are left out of the fits, to count the correct labels.

models = {
    "one Gaussian for each class": MixtureClassifier(n_components=1),
    "a mixture for each class": MixtureClassifier(
        n_components=range(1, 9), random_state=0
    ),
}
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
correct = {}
for title, model in models.items():
    correct[title] = model.fit(X_train, y_train).score(X_test, y_test)
    numbers = ", ".join(
        f"{name} {n}"
        for name, n in zip(model.classes_, model.n_components_, strict=True)
    )
    print(f"{title}: {correct[title]:.1%} correct; components: {numbers}")

# %%
# The picture
# -----------
# The background has the color of the most probable class, strong where the class is
# certain. Ellipses contain the points within two standard deviations of a component.

palette = {"one": "#0072B2", "other": "#D55E00", "cluster": "#009E73"}
colors = np.array([plt.matplotlib.colors.to_rgb(palette[k]) for k in model.classes_])
places = np.linspace(-5.5, 8.5, 281), np.linspace(-5.5, 5.5, 221)
grid = np.column_stack([each.ravel() for each in np.meshgrid(*places)])
circle = np.linspace(0, 2 * np.pi, 100)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4))
for ax, (title, model) in zip(axes, models.items(), strict=True):
    proba = model.predict_proba(grid)
    certain = (proba.max(axis=1, keepdims=True) - 1 / 3) * 1.5
    shades = 1 - 0.45 * certain * (1 - colors[proba.argmax(axis=1)])
    extent = (*places[0][[0, -1]], *places[1][[0, -1]])
    ax.imshow(shades.reshape(221, 281, 3), origin="lower", extent=extent)
    ax.scatter(*X.T, s=3, linewidths=0, c=[palette[k] for k in y])
    for mixture in model.mixtures_:
        for mean, covariance in zip(mixture.means_, mixture.covariances_, strict=True):
            root = np.linalg.cholesky(covariance)
            ellipse = (
                mean + 2 * np.column_stack([np.cos(circle), np.sin(circle)]) @ root.T
            )
            ax.plot(*ellipse.T, color="black", linewidth=0.8)
    ax.set(title=f"{title}: {correct[title]:.1%}", xticks=[], yticks=[])
plt.show()
