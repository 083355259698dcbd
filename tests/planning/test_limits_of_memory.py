"""Limits of memory: `max_memory` for every kind of data, and the limit of the container of the process."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix

import cprime
from cprime import GaussianMixture, KMeans
from cprime._utils import container
from cprime.estimators import budget

A = np.random.default_rng(0).integers(0, 99, (300, 4))
KINDS = {
    "integers": A,
    "list": A.tolist(),
    "objects": A.astype(object),
    "uint8": A.astype(np.uint8),
    "columns first": np.asfortranarray(A, dtype=np.float64),
    "CSR of integers": csr_array(A),
    "CSC": csc_array(A.astype(np.float64)),
    "CSR matrix of float32": csr_matrix(A.astype(np.float32)),
}


@pytest.mark.parametrize(
    ("make", "kind"),
    [*((KMeans, kind) for kind in KINDS), *((GaussianMixture, kind) for kind in KINDS if not kind.startswith("CS"))],
)
def test_a_limit_that_suffices_changes_nothing(make, kind):
    plain, limited = (make(3, max_memory=limit, random_state=0).fit(KINDS[kind]) for limit in (None, "4GB"))
    np.testing.assert_array_equal(limited.labels_, plain.labels_)
    assert cprime.plan(make(3), KINDS[kind]).bytes["labels"] == 4 * len(A)


def group(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Return a folder in place of that of the control groups; the process is in group /pod/main of version 2."""
    monkeypatch.setattr(container, "_ROOT", tmp_path)
    monkeypatch.setattr(container, "_GROUPS", tmp_path / "groups")
    (tmp_path / "groups").write_text("0::/pod/main\n")
    return tmp_path


def test_the_least_limit_of_the_groups_counts(tree):
    assert container.container_memory() is None
    group(tree / "pod" / "main", memory_max="max\n", memory_stat="anon 100\nfile 5000\n")
    assert container.container_memory() is None
    group(tree / "pod", memory_max="3000\n", memory_stat="anon 700\nfile 9000\n")
    assert container.container_memory() == 2300
    group(tree / "pod" / "main", memory_max="1000\n")
    assert container.container_memory() == 900
    group(tree, memory_max="600\n", memory_stat="anon 700\n")
    assert container.container_memory() == 0


def test_limits_of_version_1(tree):
    (tree / "groups").write_text("3:cpuset:/\n4:memory,misc:/pod\n0::/\n")
    group(tree / "memory" / "pod")
    (tree / "memory" / "pod" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert container.container_memory() is None
    (tree / "memory" / "memory.limit_in_bytes").write_text("5000\n")  # a container sees its own group as the root
    (tree / "memory" / "memory.stat").write_text("cache 4000\nrss 1000\ntotal_rss 1200\n")
    assert container.container_memory() == 3800


def test_a_file_is_read_in_chunks_that_its_container_allows(tmp_path, monkeypatch):
    X = np.random.default_rng(0).standard_normal((80_000, 6), dtype=np.float32)
    np.save(tmp_path / "x.npy", X)
    km = KMeans(10, random_state=0, max_iter=2, tol=0)
    free = km.fit(str(tmp_path / "x.npy")).cluster_centers_
    limited = KMeans(**km.get_params()).set_params(max_memory="6MB").fit(str(tmp_path / "x.npy")).cluster_centers_
    monkeypatch.setattr(budget, "container_memory", lambda: 6 * 10**6)
    found = km.fit(str(tmp_path / "x.npy")).cluster_centers_
    np.testing.assert_array_equal(found, limited)
    assert (found != free).any()


def test_a_fit_that_exceeds_its_container_warns(monkeypatch):
    X = np.random.default_rng(0).standard_normal((80_000, 6), dtype=np.float32)
    monkeypatch.setattr(budget, "container_memory", lambda: 10**6)
    with pytest.warns(UserWarning, match="its container has 976.6 KiB left. What takes less"):
        KMeans(10, random_state=0).fit(X)
    monkeypatch.setattr(budget, "container_memory", lambda: 10**9)
    KMeans(10, random_state=0).fit(X)
