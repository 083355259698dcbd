"""Help texts and error messages of common mistakes equal the approved ones in `approved/`.

After an intended change, run CPRIME_APPROVE=1 pytest tests/cli/test_cli_snapshots.py and review the difference.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
APPROVED = Path(__file__).parent / "approved"
COMMANDS = (
    "",
    *["fit", "plan", "resume", "update", "predict", "info", "merge", "combine", "bound", "report", "sweep", "demo"],
    "completion",
)
MISTAKES = (
    "fit",
    "fitt x.npy",
    "cluster x.npy",
    "fit absent.npy -k 3 -o m.safetensors",
    "fit x.npy -o m.safetensors",
    "fit x.npy -k abc -o m.safetensors",
    "fit x.npy -k 0 -o m.safetensors",
    "fit x.npy -k 1000 -o m.safetensors",
    "fit x.npy -k 3 --checkpont run -o m.safetensors",
    "fit x.npy -k 3 -m dbscan -o m.safetensors",
    "fit x.npy -k 3 --search nonsense -o m.safetensors",
    "fit x.npy -k 3 --init nonsense -o m.safetensors",
    "fit x.npy -k 3 -m gmm --init k-means|| -o m.safetensors",
    "fit x.npy -k 3 --tol -1 -o m.safetensors",
    "fit x.npy -k 3 --n-active 2 -o m.safetensors",
    "fit x.npy -k 3 --weights equal -o m.safetensors",
    "fit x.npy -k 3 --dtype float16 -o m.safetensors",
    "fit x.npy -k 3 -m gmm --dof 3 -o m.safetensors",
    "fit x.npy -k 3 -m student-t --n-factors 3 -o m.safetensors",
    "fit x.npy -k 3 -m gmm --covariance-type diag --n-factors 3 -o m.safetensors",
    "fit x.npy -k 3 -m student-t --dof many -o m.safetensors",
    "fit x.npy -k 3 -m student-t --dof 0 -o m.safetensors",
    "fit x.npy -k 3 -m gmm --n-active 20 -o m.safetensors",
    "fit x.npy -k 3 -m gmm --metric cosine -o m.safetensors",
    "fit x.npy -k 3 --search full --n-neighbors 9 -o m.safetensors",
    "fit x.npy -k 3 -m gmm --search bounded -o m.safetensors",
    "fit x.npy -k 3 -o m.pkl",
    "fit x.npy -k 3 -o nowhere/m.safetensors",
    "fit x.npy -k 3 --spill nowhere -o m.safetensors",
    "fit x.npy -k 3 --max-memory 8XB -o m.safetensors",
    "fit x.npy -k 3 --max-memory 1kB -o m.safetensors",
    "fit x.npy -k 3 -m student-t --max-memory 1kB -o m.safetensors",
    "plan -k 3",
    "plan x.npy --shape 3x3 -k 3",
    "plan --shape 3 -k 3",
    "plan --shape 99999999999999999999x3 -k 5",
    "plan x.npy -k 1000",
    "fit x.npy -k 3 --separator ; -o m.safetensors",
    "fit table.csv -k 3 -o m.safetensors",
    "fit table.csv -k 3 --columns a,z -o m.safetensors",
    "fit table.csv -k 3 --numeric -o m.safetensors",
    "fit x.txt -k 3 -o m.safetensors",
    "predict model.safetensors x.npy",
    "predict x.npy model.safetensors -o l.npy",
    "predict model.safetensors wide.npy -o l.npy",
    "predict model.safetensors x.npy --proba -o l.csv",
    "predict model.safetensors x.npy -o l.xlsx",
    "predict model.safetensors x.npy --json -o -",
    "predict model.safetensors x.npy --nearest 4 -o l.npy",
    "predict - - -o l.npy",
    "fit x.npy - -k 3 -o m.safetensors",
    "fit x.npy -k 5 --init model.safetensors -o m.safetensors",
    "fit x.npy -k 3 -m poisson -o m.safetensors",
    "fit x.npy -k 3 -m categorical --scale -o m.safetensors",
    "update model.safetensors x.npy",
    "update model.safetensors x.npy --batch -k 3 -o m.safetensors",
    "sweep x.npy -k 5:2",
    "report model.safetensors x.npy --image-shape 8x8 -o r.html",
)


@pytest.fixture
def folder(X, cprime, tmp_path, monkeypatch):
    """Write valid and invalid input files to the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    np.save("x.npy", X)
    np.save("wide.npy", np.hstack([X, X]))
    Path("x.txt").write_text("1,2\n")
    rows = [f"{i},star {i},{a},{'' if i == 4 else b},2020-01-01" for i, (a, b) in enumerate(X.tolist())]
    Path("table.csv").write_text("\n".join(["i,name,a,b,day", *rows]) + "\n")
    assert cprime("fit", "x.npy", "-k", 3, "-o", "model.safetensors", "-q").code == 0


def approved(name, text):
    """Check that a text equals the approved one; if CPRIME_APPROVE is set, approve it first."""
    path = APPROVED / name
    if os.environ.get("CPRIME_APPROVE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_into_80_columns_and_is_as_approved(command, cprime, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    outcome = cprime(*command.split(), "--help")
    assert outcome.code == 0
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert "…\n" not in outcome.out.replace("A,B,…\n", "").replace("NAME…\n", "")
    assert "...\n" not in outcome.out.replace("[ARGS]...", "").replace("DATA...", "")
    approved(f"help-{command or 'cprime'}.txt", outcome.out)


def test_common_mistakes_write_nothing_and_say_what_is_approved(cprime, folder):
    found = []
    for mistake in MISTAKES:
        before = sorted(Path.cwd().iterdir())
        outcome = cprime(*shlex.split(mistake.replace(";", "';'").replace("||", "'||'")))
        assert outcome.out == ""
        assert sorted(Path.cwd().iterdir()) == before
        found.append(f"$ cprime {mistake}\n{outcome.err}→ {outcome.code}\n")
    approved("mistakes.txt", "\n".join(found))


@pytest.mark.long
def test_the_installed_command_says_the_same(folder):
    command = Path(sys.executable).with_name("cprime")
    whole = (APPROVED / "mistakes.txt").read_text()
    for mistake in MISTAKES[::40]:  # only a sample, because each needs a process; the test above runs all
        arguments = shlex.split(mistake.replace(";", "';'").replace("||", "'||'"))
        result = subprocess.run([command, *arguments], capture_output=True, text=True, check=False)
        assert result.stdout == ""
        assert f"$ cprime {mistake}\n{result.stderr}→ {result.returncode}\n" in whole
