"""Faults of the machine during a command: one error line, exit code 1, old files unchanged, no temporary files left."""

import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from cprime import KMeans1D, KMedoids
from cprime.persistence import model_files

resource = pytest.importorskip("resource", reason="limits as POSIX has them")
MAIN = "from cprime.cli import main; main()"
LITTLE_MEMORY = """
import resource, sys, warnings
from pathlib import Path
import numpy as np
from cprime import KMeans, load
from cprime.cli.app import app
import cprime.cli.predict

warnings.filterwarnings("ignore", "X does not have valid")
model, data, labels = sys.argv[1:]
small = np.random.default_rng(0).normal(size=(300, 2))
estimator = load(model)
before = dict(vars(estimator))
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 100 * 2**20,) * 2)
try:
    estimator.fit(data)
except MemoryError as error:
    sys.stdout.write("fit\\n")
assert all(vars(estimator)[name] is value for name, value in before.items())
estimator.predict(small)
estimator.fit(small)
app(["predict", model, data, "-o", labels, "--chunk-rows", "100000000"])
"""


@contextmanager
def small_files():
    """Limit the size of files to 300 bytes, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert signal.getsignal(signal.SIGXFSZ) is signal.SIG_IGN
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def source(write, rng):
    return write("x.npy", rng.normal(size=(3000, 2)))


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_full_disk_is_named_when_a_model_is_saved(fails, source, model, tmp_path):
    before = content(tmp_path)
    with small_files():
        assert fails("fit", source, "-k", 3, "-o", model, "-q") == f"{model}: File too large"
    assert content(tmp_path) == before


@pytest.mark.parametrize("name", ["l.npy", "l.csv", "l.parquet", "l.feather"])
def test_a_full_disk_is_named_when_labels_are_written(name, fails, source, model, tmp_path):
    (tmp_path / name).write_bytes(b"old")
    before = content(tmp_path)
    with small_files():
        assert "File too large" in fails("predict", model, source, "-o", tmp_path / name)
    assert content(tmp_path) == before


def test_a_full_disk_is_named_when_a_checkpoint_is_written(cprime, source, tmp_path):
    args = ("fit", source, "-k", 3, "--checkpoint", tmp_path / "c", "-o", tmp_path / "m.safetensors", "-q")
    with small_files():
        outcome = cprime(*args)
    assert outcome.code == 1
    assert outcome.err.startswith(f"error: checkpoint {tmp_path / 'c'}: ")
    assert outcome.err.endswith("(File too large)\n")
    assert not (tmp_path / "m.safetensors").exists()
    assert cprime(*args).code == 0
    assert model_files.load(tmp_path / "m.safetensors").n_clusters == 3


def test_a_full_disk_is_an_os_error_with_its_number(model):
    before = content(model.parent)
    estimator = model_files.load(model)
    with small_files(), pytest.raises(OSError, match="File too large") as raised:
        estimator.save(model)
    assert raised.value.errno == 27
    assert content(model.parent) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_results_that_cannot_be_printed_are_an_error(model, forked):
    result = forked(f"import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); {MAIN}", "info", model, "--json")
    assert (result.returncode, result.stderr) == (1, "error: No space left on device\n")


def test_a_reader_that_has_gone_ends_a_command_in_silence(model, forked):
    gone = "import os; read, write = os.pipe(); os.close(read); os.dup2(write, 1)"
    result = forked(f"{gone}; {MAIN}", "info", model)
    assert (result.returncode, result.stderr) == (1, "")


@pytest.mark.skipif(not hasattr(os, "setresuid") or os.geteuid() != 0, reason="only the superuser can become another")
def test_a_folder_that_may_not_be_written_is_named(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = content(tmp_path)
    estimator = model_files.load(model)
    os.setresuid(65534, 65534, 0)
    try:
        for name in ("new.safetensors", "model.safetensors"):
            with pytest.raises(OSError, match=r"read-only|no file can be created|Permission denied"):
                estimator.save(name)
    finally:
        os.setresuid(0, 0, 0)
    assert content(tmp_path) == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory as Linux has them")
def test_too_little_memory_is_said_and_leaves_the_estimator_as_it_was(model, tmp_path, forked):
    np.lib.format.open_memmap(tmp_path / "big.npy", "w+", np.float64, (10_000_000, 2))
    ran = forked(LITTLE_MEMORY, model, tmp_path / "big.npy", tmp_path / "l.npy")
    assert ran.stdout == "fit\n", ran.stderr
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: not enough memory")
    assert ran.stderr.count("\n") == 1
    assert not (tmp_path / "l.npy").exists()


@pytest.mark.parametrize("estimator", [KMeans1D(3), KMedoids(3)], ids=repr)
def test_models_of_every_kind_are_described_and_predict(estimator, cprime, write, tmp_path, rng):
    X = rng.normal(size=(40, 1))
    estimator.fit(X).save(tmp_path / "m.safetensors")
    assert cprime("info", tmp_path / "m.safetensors", "--json").json["n_components"] == 3
    assert cprime("predict", tmp_path / "m.safetensors", write("x.npy", X), "-o", tmp_path / "l.npy").code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "l.npy"), estimator.labels_)


def test_a_model_without_centers_is_named(fails, tmp_path, rng):
    X = rng.normal(size=(20, 1))
    KMedoids(3, metric="precomputed").fit(np.abs(X - X.T)).save(tmp_path / "m.safetensors")
    assert "has no centers" in fails("info", tmp_path / "m.safetensors")
