"""
Regression with two branches
============================

A ball flew a known distance: at what angle was it thrown? There are two answers, a low
arc and a high one. Their mean is 45 degrees, the angle of the farthest throw, which is
wrong for every distance but one. A regression gives that mean. A mixture that was
fitted to throws describes the joint density of distance, time and angle, and so the
density of the angle for a given distance. Its quantiles lie on the branches, and draws
from it hit the target. If the time of flight is also given, one answer remains, and the
same mixture gives it.
"""

import matplotlib.pyplot as plt
import numpy as np

from cprime import GaussianMixture

plt.style.use("cprime.style")

# %%
# Throws
# ------
# A ball is thrown at about 25 m/s, without air resistance: its distance, time of flight
# and angle.

SPEED, GRAVITY = 25.0, 9.81
DISTANCE, TIME, ANGLE = range(3)
rng = np.random.default_rng(0)


def reached(angle, speed=SPEED):
    return speed**2 / GRAVITY * np.sin(2 * np.radians(angle))


def throws(n):
    angle = rng.uniform(10, 80, n)
    speed = rng.normal(SPEED, 0.02 * SPEED, n)
    time = 2 * speed * np.sin(np.radians(angle)) / GRAVITY
    X = np.column_stack([reached(angle, speed), time, angle])
    return X + rng.normal(0, [0.5, 0.05, 0.5], X.shape)  # with errors of measurement


X = throws(20_000)
gm = GaussianMixture(24, n_active=None, tol=1e-4, random_state=0).fit(X)

# %%
# Angles for a distance
# ---------------------
# p(angle | distance) on a grid is the density of both divided by that of the distance
# alone; each of them is a marginal. The mode is the maximum, on the more probable
# branch.

distances, angles = np.linspace(25, 62, 149), np.linspace(5, 85, 321)
pairs = np.stack(np.meshgrid(distances, angles), axis=-1)
both = gm.marginal([DISTANCE, ANGLE])
density = both.score_samples(pairs.reshape(-1, 2)).reshape(pairs.shape[:2])
density = np.exp(density - gm.marginal([DISTANCE]).score_samples(distances[:, None]))

given = both.condition([0], distances[:, None])  # distance is the first column of two
aims = {
    "the mean": given.mean()[:, 0],
    "the mode": angles[density.argmax(axis=0)],
    "a draw": given.sample(random_state=0)[:, 0, 0],
}
for name, aim in aims.items():
    miss = np.abs(reached(aim) - distances).mean()
    print(f"aimed by {name}, a throw misses by {miss:.1f} m")

# %%
# One more column
# ---------------
# Rows are complete here: `regress` reads only the given columns.

new = throws(2_000)
found = {}
for name, columns in {
    "the distance": [DISTANCE],
    "distance and time": [DISTANCE, TIME],
}.items():
    rest = [column for column in range(3) if column not in columns]
    means, deviations = gm.regress(new, columns, return_std=True)
    at = rest.index(ANGLE)
    off = means[:, at] - new[:, ANGLE]
    found[name] = means[:, at]
    print(
        f"from {name} the angle is off by {np.sqrt(np.square(off).mean()):.1f} degrees,"
        f" and is said to be by {np.sqrt(np.square(deviations[:, at]).mean()):.1f}"
    )

# %%
# The branches
# ------------
# The quantiles follow the branches; the mean lies where there are no throws. Near the
# largest distance the branches meet.

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(10, 3.6), width_ratios=(1.25, 0.8, 1)
)
left.imshow(
    np.sqrt(density),
    extent=(*distances[[0, -1]], *angles[[0, -1]]),
    origin="lower",
    aspect="auto",
    cmap="Blues",
    interpolation="bilinear",
)
left.grid(False)
for q in (0.05, 0.25, 0.75, 0.95):
    left.plot(distances, given.quantile(q), color="C0", linewidth=0.9)
left.plot(distances, aims["the mean"], color="C1")
left.text(26, 46.5, "the mean", color="C1", weight="bold")
left.text(26, 31, "quantiles: 5, 25, 75, 95 %", color="C0", weight="bold")
left.set(title="angle for a distance", xlabel="distance [m]", ylabel="angle [degrees]")

for distance, color in zip((30, 45, 60), ("C2", "C4", "C3"), strict=True):
    mixture = both.condition([0], [distance])
    likely = np.exp(mixture.score_samples(angles[:, None]))
    middle.fill_between(angles, likely, alpha=0.25, color=color, linewidth=0)
    middle.plot(angles, likely, color=color)
    top = np.where(angles > 45, likely, 0).argmax()
    middle.text(
        angles[top] - 2,
        likely[top],
        f"{distance} m",
        color=color,
        weight="bold",
        ha="right",
        va="center",
    )
middle.set(title="its density", xlabel="angle [degrees]", yticks=[])

places = {"the distance": (12, 49), "distance and time": (41, 25)}
for (name, means), color in zip(found.items(), ("C1", "C2"), strict=True):
    right.plot(new[:, ANGLE], means, ".", markersize=2, color=color, alpha=0.5)
    right.text(*places[name], name, color=color, weight="bold")
right.set(
    title="the mean, given …", xlabel="angle [degrees]", ylabel="its mean [degrees]"
)
plt.show()
