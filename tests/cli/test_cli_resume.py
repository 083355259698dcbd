"""`cprime fit --checkpoint` and `cprime resume`: an interrupted or killed fit continues and ends in the same model."""

import signal
import subprocess
import sys

import numpy as np
import pytest

import cprime as package
from cprime import KMeans
from cprime.callbacks import ProgressBar
from cprime.persistence import checkpoints as states
from cprime.persistence.checkpoints import HEAD, MODEL
from cprime.persistence.model_files import read_header

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]
PASSES = 4  # the fit hangs in the last of them
# Runs the command line with a fit that stores every state, then hangs and reports this on stdout.
HANGING = f"""
import sys, time
from cprime.persistence import checkpoints as folder
from cprime.cli import main
from cprime.callbacks import ProgressBar

def hang(self, row):
    if row["iteration"] == {PASSES}:
        print("hangs", flush=True)
        time.sleep(60)

ProgressBar.on_iteration = hang
folder._SHARE = float("inf")
main()
"""
FITS = {
    "k-means": ("-k", 30, "--init", "random", "--tol", 0, "--max-iter", 8),
    "mixture": ("-k", 9, "-m", "gmm", "--covariance-type", "diag", "--tol", 0, "--max-iter", 8),
    "two starts": ("-k", 30, "--init", "random", "--tol", 0, "--max-iter", 8, "--n-init", 2),
}
FITTED = ("cluster_centers_", "means_", "weights_", "covariances_", "labels_", "lower_bounds_", "n_iter_", "variance_")


@pytest.fixture
def points():
    return np.random.default_rng(0).standard_normal((600, 2)).astype(np.float32)


def hanging(*args):
    """Start the command line and return its process as soon as its fit hangs."""
    command = [sys.executable, "-c", HANGING, *map(str, args)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell may ignore it in its jobs
    )
    assert process.stdout.readline() == "hangs\n", process.communicate()[1]
    return process


def killed(*args):
    process = hanging(*args)
    process.kill()
    process.communicate()


def interrupted(*args):
    """Return the text that an interrupted command writes to stderr."""
    process = hanging(*args)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    return err


@pytest.fixture
def stopped(cprime, monkeypatch):
    """Return a function that runs a command in this process and interrupts its fit in the third pass."""

    def run(*args):
        def interrupt(self, row):
            if row["iteration"] == 3:
                raise KeyboardInterrupt

        with monkeypatch.context() as context:
            context.setattr(ProgressBar, "on_iteration", interrupt)
            context.setattr(states, "_SHARE", float("inf"))
            assert cprime(*args).code == 130

    return run


def assert_same(path, expected):
    found, expected = package.load(path), package.load(expected)
    for name in FITTED:
        assert hasattr(found, name) == hasattr(expected, name)
        np.testing.assert_array_equal(getattr(found, name, None), getattr(expected, name, None), name)


@pytest.mark.long
@pytest.mark.parametrize("name", FITS)
def test_a_killed_fit_goes_on_to_the_same_bits(name, cprime, write, points, tmp_path):
    source, folder, options = write("x.npy", points), tmp_path / "checkpoint", FITS[name]
    assert cprime("fit", source, *options, "-o", tmp_path / "undisturbed.safetensors", "-q").code == 0
    killed("fit", source, *options, "-o", tmp_path / "m.safetensors", "--checkpoint", folder)
    assert not (tmp_path / "m.safetensors").exists()

    figures = cprime("info", folder, "--json").json
    assert (figures["ended"], figures["n_samples"], figures["n_iter"]) == (False, 600, PASSES - 1)
    assert figures["n_states"] == 2
    assert (figures["quantization_error"] is None) == (name == "mixture")
    assert figures["start"] == 1

    outcome = cprime("resume", folder, "-o", tmp_path / "m.safetensors", "--json", "--threads", 1, "--spill", tmp_path)
    assert "600 rows of 2 columns, read in one chunk of 4.7 KiB" in outcome.err
    assert (outcome.json["n_iter"], outcome.json["n_chunks"], outcome.json["chunk_bytes"]) == (8, 1, 4800)
    assert_same(tmp_path / "m.safetensors", tmp_path / "undisturbed.safetensors")
    assert cprime("info", folder, "--json").json["ended"] is True
    assert cprime("resume", folder, "-o", tmp_path / "again.safetensors", "-q").code == 0
    assert_same(tmp_path / "again.safetensors", tmp_path / "undisturbed.safetensors")


def test_states_that_cannot_be_read_are_said_and_no_iterations_are_claimed(cprime, write, points, tmp_path):
    folder = tmp_path / "checkpoint"
    KMeans(30, init="random", max_iter=2, tol=0, checkpoint=folder, random_state=0).fit(points)
    (folder / MODEL).unlink()
    state = folder / "state-00000001"
    state.mkdir(exist_ok=True)
    (state / HEAD).write_bytes(b"damaged")
    outcome = cprime("info", folder, "--json")
    assert [outcome.json[name] for name in ("ended", "n_states", "start", "n_iter")] == [False, 1, None, None]
    assert "none of the states" in outcome.err


@pytest.mark.parametrize(
    ("name", "reading"),
    [
        ("x.csv", ("--drop", "c", "--sample-weight", "w")),
        ("x.csv", ("--columns", "b,a", "--dtype", "float64")),
        ("x.parquet", ("--sample-weight", "w", "--chunk-rows", 100)),
        ("x.npz", ("--key", "a")),
    ],
)
def test_data_are_opened_again_as_they_were(name, reading, cprime, stopped, write, points, tmp_path):
    a, b = points.T.round(3)
    weights = np.arange(600) % 5
    columns = {"a": points, "b": points[:3]} if name == "x.npz" else {"a": a, "b": b, "c": a + b, "w": weights}
    source, folder, options = write(name, columns), tmp_path / "checkpoint", (*FITS["k-means"], *reading)
    assert cprime("fit", source, *options, "-o", tmp_path / "undisturbed.safetensors", "-q").code == 0
    stopped("fit", source, *options, "-o", tmp_path / "m.safetensors", "--checkpoint", folder)
    assert not (folder / "data.npy").exists()
    outcome = cprime("resume", folder, "-o", tmp_path / "m.safetensors", "-q")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert_same(tmp_path / "m.safetensors", tmp_path / "undisturbed.safetensors")


@pytest.mark.long
def test_ctrl_c_says_how_to_go_on(cprime, write, points, tmp_path):
    source, folder, output = write("x.npy", points), tmp_path / "a checkpoint", tmp_path / "m.safetensors"
    options = (*FITS["k-means"], "-q", "-o", output)
    line = interrupted("fit", source, *options, "--checkpoint", folder)
    assert line == f"interrupted: cprime resume '{folder}' -o {output} goes on with it\n"
    line = interrupted("resume", folder, "-o", output, "-q")
    assert line == f"interrupted: cprime resume '{folder}' -o {output} goes on with it\n"
    assert cprime("resume", folder, "-o", output, "-q").code == 0
    assert interrupted("fit", source, *options) == "interrupted\n"


def test_other_data_than_those_of_the_checkpoint_are_an_error(fails, stopped, write, points, tmp_path):
    source, folder = write("x.npy", points), tmp_path / "checkpoint"
    stopped("fit", source, *FITS["k-means"], "-o", tmp_path / "m.safetensors", "--checkpoint", folder)
    write("x.npy", 2 * points)
    assert "its data (or their weights) are not these" in fails("resume", folder, "-o", tmp_path / "m.safetensors")
    source.unlink()
    assert fails("resume", folder, "-o", tmp_path / "m.safetensors") == f"{source} does not exist"


def test_what_no_checkpoint_is(fails, write, points, tmp_path):
    source, output = write("x.npy", points), tmp_path / "m.safetensors"
    assert "no such folder" in fails("resume", tmp_path / "absent", "-o", output)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("")
    assert "it holds 'letter.txt'" in fails("resume", tmp_path / "other", "-o", output)
    options = ("-k", 3, "--checkpoint", tmp_path / "other", "-o")
    assert "it holds 'letter.txt'" in fails("fit", source, *options, output)
    line = fails("fit", source, *options, tmp_path / "other" / "m.safetensors")
    assert line == f"the output {tmp_path / 'other' / 'm.safetensors'} cannot lie in the folder of the checkpoint"


def test_a_model_knows_its_checkpoint_by_its_path(points, tmp_path):
    package.KMeans(3, checkpoint=tmp_path / "checkpoint", random_state=0).fit(points).save(tmp_path / "m.safetensors")
    assert package.load(tmp_path / "m.safetensors").checkpoint == str(tmp_path / "checkpoint")
    assert read_header(tmp_path / "checkpoint" / "model.safetensors")["class"] == "KMeans"


def test_a_checkpoint_remembers_the_output_of_its_fit(cprime, stopped, write, points, tmp_path, monkeypatch):
    source, folder, options = write("x.npy", points), tmp_path / "checkpoint", FITS["k-means"]
    assert cprime("fit", source, *options, "-o", tmp_path / "undisturbed.safetensors", "-q").code == 0
    monkeypatch.chdir(tmp_path)
    stopped("fit", source, *options, "-o", "m.safetensors", "--checkpoint", folder)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cprime("info", folder, "--json").json["resumes_to"] == str(tmp_path / "m.safetensors")
    stopped("resume", folder, "-o", "mine.safetensors")
    assert cprime("resume", folder, "--json").json["output"] == str(tmp_path / "m.safetensors")
    assert_same(tmp_path / "m.safetensors", tmp_path / "undisturbed.safetensors")

    # `cprime resume` of a complete fit writes the model again, or writes it to the path given by -o.
    (tmp_path / "m.safetensors").unlink()
    assert cprime("resume", folder, "-q").code == 0
    assert_same(tmp_path / "m.safetensors", tmp_path / "undisturbed.safetensors")
    (tmp_path / "m.safetensors").unlink()
    assert cprime("resume", folder, "-o", "mine.safetensors", "-q").code == 0
    assert_same(tmp_path / "elsewhere" / "mine.safetensors", tmp_path / "undisturbed.safetensors")
    assert not (tmp_path / "m.safetensors").exists()


def test_the_same_fit_with_another_output_is_remembered(cprime, stopped, write, points, tmp_path):
    source, folder, options = write("x.npy", points), tmp_path / "checkpoint", FITS["k-means"]
    stopped("fit", source, *options, "-o", tmp_path / "first.safetensors", "--checkpoint", folder)
    stopped("fit", source, *options, "-o", tmp_path / "second.safetensors", "--checkpoint", folder)
    assert cprime("resume", folder, "-q").code == 0
    assert (tmp_path / "second.safetensors").exists()
    assert not (tmp_path / "first.safetensors").exists()


@pytest.mark.parametrize("ended", [True, False])
def test_a_checkpoint_of_python_names_no_output(ended, fails, cprime, points, tmp_path):
    folder = tmp_path / "checkpoint"

    def interrupt(row):
        if not ended:
            raise KeyboardInterrupt

    fit = package.KMeans(3, checkpoint=folder, random_state=0, callbacks=interrupt).fit
    if ended:
        fit(points)
    else:
        with pytest.raises(KeyboardInterrupt):
            fit(points)
    assert "resumes_to" not in {k for k, v in cprime("info", folder, "--json").json.items() if v is not None}
    line = fails("resume", folder)
    assert line == f"the checkpoint {folder} names no output: say with -o FILE where to write the model"
    assert cprime("resume", folder, "-o", tmp_path / "m.safetensors", "-q").code == 0


def test_a_checkpoint_from_before_outputs_were_remembered(fails, cprime, stopped, write, points, tmp_path):
    source, folder, output = write("x.npy", points), tmp_path / "checkpoint", tmp_path / "m.safetensors"
    stopped("fit", source, *FITS["k-means"], "-o", output, "--checkpoint", folder)
    description = states.read(folder)
    assert description.pop("output") == str(output)
    states._describe(folder, description)
    assert "names no output" in fails("resume", folder)
    stopped("resume", folder, "-o", output)
    stopped("fit", source, *FITS["k-means"], "-o", output, "--checkpoint", folder)
    assert cprime("resume", folder, "-q").code == 0
    assert output.exists()


def test_a_checkpoint_whose_heads_are_damaged_is_one_line_and_stays(fails, stopped, write, points, tmp_path):
    source, folder, output = write("x.npy", points), tmp_path / "checkpoint", tmp_path / "m.safetensors"
    options = ("-k", 30, "--init", "random", "--tol", 0, "--max-iter", 8, "-o", output, "--checkpoint", folder)
    stopped("fit", source, *options)
    heads = sorted(folder.glob("state-*/head.safetensors"))
    for head in heads:
        head.write_bytes(b"torn")
    for command in (("resume", folder), ("fit", source, *options)):
        line = fails(*command)
        assert "none of its states can be read" in line
        assert str(heads[-1]) in line
    stopped("fit", source, *options[:-1], tmp_path / "another")


def test_an_output_that_cannot_be_written_any_more_is_named(fails, stopped, write, points, tmp_path):
    source, folder, gone = write("x.npy", points), tmp_path / "checkpoint", tmp_path / "gone"
    gone.mkdir()
    stopped("fit", source, *FITS["k-means"], "-o", gone / "m.safetensors", "--checkpoint", folder)
    gone.rmdir()
    assert fails("resume", folder) == f"the folder of {gone / 'm.safetensors'} does not exist"
