"""
Near-duplicates in a folder of embeddings
=========================================

A folder of Parquet files has one document per row: an id and its embedding, a list of
numbers. Some documents are nearly copies of others, and one of each pair has to be
removed before anything is trained on them. Comparing all pairs takes N² / 2 products.
Rows that are nearly equal are almost always in the same cluster, so it is enough to
compare within clusters (SemDeDup: Abbas et al. 2023, arXiv:2303.09540). `KMeans` reads
the folder directly, and `cprime predict --partition-by-cluster` writes a folder of
Parquet files for each cluster. After that, only one cluster at a time is in memory. The
embeddings are **generated**, so the copies are known.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

from cprime import KMeans, open_data

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as missing:
    print(f"This example reads and writes Parquet files: {missing}")
    raise SystemExit from None

plt.style.use("cprime.style")

# %%
# A folder of embeddings
# ----------------------
# Topics lie within themes, and documents lie around topics. The variation along each
# direction decreases by i^-0.6, as it does in embeddings of text; all rows have length
# 1. One document in ten is a copy of another one with small changes.

N, D, COPIES = 27_000, 96, 3_000
rng = np.random.default_rng(0)
scale = np.arange(1, D + 1) ** -0.6


def unit(X):
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def around(centers, n, spread):
    """Return n rows around centers drawn at random."""
    picked = centers[rng.integers(len(centers), size=n)]
    return picked + spread * scale * rng.standard_normal((n, D))


themes = around(np.zeros((1, D)), 30, 1.0)
topics = around(themes, 600, 0.7)
originals = unit(around(topics, N, 0.8))
copied = rng.choice(N, COPIES, replace=False)
changes = rng.lognormal(-3, 0.6, (COPIES, 1)) * rng.standard_normal((COPIES, D))
order = rng.permutation(N + COPIES)
X = np.vstack([originals, unit(originals[copied] + scale * changes)])[order]
places = np.argsort(order)  # position of each document after shuffling
pairs = np.column_stack([places[copied], places[N:]])

home = tempfile.TemporaryDirectory()
folder = Path(home.name) / "embeddings"
folder.mkdir()
for part, rows in enumerate(np.array_split(np.arange(len(X)), 6)):
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X[rows].ravel()), D)
    table = pa.table({"doc_id": [f"doc-{n}" for n in rows], "embedding": lists})
    pq.write_table(table, folder / f"part-{part}.parquet")

# %%
# Cluster it, and a folder for each cluster
# -----------------------------------------
# In Python the fit is two lines; the second command writes `cluster=17/part-0.parquet`
# and so on, with the ids, the distances to the center and, by ``--with-data``, the
# embeddings. The command line fits as well::
#
#   cprime fit embeddings/ --column embedding --id doc_id -k 300 --metric cosine \
#       -o m.safetensors
#   cprime predict m.safetensors embeddings/ --column embedding --id doc_id \
#       --partition-by-cluster clusters/ --with-data

model, clusters = Path(home.name) / "m.safetensors", Path(home.name) / "clusters"
embeddings = open_data(folder / "*.parquet", columns="embedding")
km = KMeans(300, metric="cosine", random_state=0).fit(embeddings)
km.save(model)
command = ["predict", model, folder, "--column", "embedding", "--id", "doc_id"]
command += ["--partition-by-cluster", clusters, "--with-data", "--quiet"]
subprocess.run([sys.executable, "-m", "cprime", *map(str, command)], check=True)
print(f"{embeddings.n_rows:,} embeddings, {len(list(clusters.iterdir()))} clusters")

# %%
# Near-duplicates, cluster by cluster
# -----------------------------------
# In each cluster, documents are sorted by their distance to the center, and a document
# is removed if its cosine to an earlier one is above 0.97. Of a group of copies, the
# one nearest to the center stays; in the reverse order, the least typical one would
# stay.

CLOSE = 0.03  # 1 - cos
nearest, gone, n_compared = {}, set(), 0
begin = time.perf_counter()
for path in sorted(clusters.glob("cluster=*/*.parquet")):
    table = pq.read_table(path, partitioning=None).sort_by("distance")
    ids = table["doc_id"].to_pylist()
    rows = open_data(table, columns="embedding").read(0, len(ids))
    gaps = 1 - rows @ rows.T
    np.fill_diagonal(gaps, np.inf)
    n_compared += len(ids) * (len(ids) - 1) // 2
    nearest.update(zip(ids, gaps.min(axis=1), strict=True))
    earlier = np.tril(gaps < CLOSE, -1).any(axis=1)
    gone.update(np.array(ids)[earlier])
seconds = time.perf_counter() - begin

n = len(X)
is_copy = np.zeros(n, dtype=bool)
is_copy[pairs] = True
marked = np.array([f"doc-{i}" in gone for i in range(n)])
found = marked[pairs].any(axis=1)
print(f"compared {2 * n_compared / n**2:.2%} of all pairs, in {seconds:.1f} s")
print(f"found {found.mean():.1%} of the {COPIES:,} pairs of copies")
print(f"{(marked & ~is_copy).sum()} documents went that are no copies")

# %%
# How many clusters?
# ------------------
# More clusters need fewer products. A border between clusters rarely separates
# documents that are close to each other, so true copies stay together at any number.

apart = 1 - (X[pairs[:, 0]] * X[pairs[:, 1]]).sum(axis=1)
edges = np.quantile(apart, np.linspace(0, 1, 13))
group = np.clip(np.searchsorted(edges, apart) - 1, 0, 11)
middles = [np.median(apart[group == g]) for g in range(12)]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.7), layout="constrained")
for C, color in ((30, "C2"), (300, "C1"), (3000, "C4")):
    labels = KMeans(C, metric="cosine", random_state=0).fit(embeddings).labels_
    together = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    share = (np.bincount(labels).astype(float) ** 2).sum() / n**2
    right.plot(
        middles,
        np.bincount(group, together) / np.bincount(group),
        "o-",
        color=color,
        markersize=4,
        label=f"C = {C:,}: {share:.2%} of all pairs",
    )
    print(f"C = {C:5,}: {together.mean():.1%} together, {share:.2%} compared")
right.axvline(CLOSE, color="black", linewidth=1, linestyle=":")
right.set(
    xscale="log",
    ylim=(0.6, 1.02),
    xlabel="1 − cos of a document and its copy",
    ylabel="share in the same cluster",
    title="The nearer, the surer they are together",
)
right.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
right.legend(loc="lower left", title="what is compared", fontsize=8, title_fontsize=8)

gaps = np.array([nearest[f"doc-{i}"] for i in range(n)])
bins = np.geomspace(1e-4, 1, 80)
left.hist(gaps[~is_copy], bins, color="C0", alpha=0.8)
left.hist(gaps[is_copy], bins, color="C1", alpha=0.8)
left.axvline(CLOSE, color="black", linewidth=1, linestyle=":")
left.text(1.5e-3, 620, "with a copy", color="C1", ha="center")
left.text(0.3, 1800, "without", color="C0")
left.text(CLOSE * 0.9, left.get_ylim()[1] * 0.93, "← one goes", ha="right")
left.set(
    xscale="log",
    xlim=(1e-4, 1.5),
    xlabel="1 − cos to the nearest of the cluster",
    ylabel="documents",
    title="Copies have a peak of their own",
)
plt.show()
home.cleanup()
