"""Build wheels of this source, make them run on other Linux systems, and test them in empty environments.

One wheel serves Python 3.12 and later by the stable ABI, one serves 3.11. Both are built and tested with every Python
from 3.11 on that is found on the path or among those of pyenv.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
UV = Path(sys.executable).parent / "uv"
MINORS = range(11, 16)
STABLE_ABI = 12  # first minor version supported by nanobind's stable ABI


def interpreter(minor):
    """Return the path of Python 3.`minor`, or None."""
    managed = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3"))
    for path in [*managed, shutil.which(f"python3.{minor}")]:
        if path and subprocess.run([path, "-c", "pass"], check=False, capture_output=True).returncode == 0:
            return Path(path)
    return None


def call(*command, **options):
    print("$", *command, flush=True)
    subprocess.run(command, check=True, **options)


def build(pythons):
    """Build the source distribution and, from it, a wheel for each ABI in dist/."""
    shutil.rmtree(DIST, ignore_errors=True)
    call(UV, "build", "--quiet", "--sdist", "--out-dir", DIST, ROOT)
    source = next(DIST.glob("*.tar.gz"))
    stable = [path for minor, path in pythons.items() if minor >= STABLE_ABI]
    own = [path for minor, path in pythons.items() if minor < STABLE_ABI]
    with tempfile.TemporaryDirectory() as folder:
        for python in own + stable[:1]:
            call(UV, "build", "--quiet", "--wheel", "--python", python, "--out-dir", folder, source)
        for wheel in sorted(Path(folder).glob("*.whl")):
            if sys.platform == "linux":
                path = f"{UV.parent}:/usr/local/bin:/usr/bin:/bin"  # patchelf is there
                call(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", DIST, wheel, env={"PATH": path})
            else:
                shutil.copy(wheel, DIST)


def test(pythons):
    """Test each Python in its own environment, with the matching wheel and its dependencies."""
    for minor, python in pythons.items():
        tag = "cp312-abi3" if minor >= STABLE_ABI else f"cp3{minor}-cp3{minor}"
        wheels = sorted(DIST.glob(f"*-{tag}-*.whl"))
        if not wheels:
            sys.exit(f"dist/ has no wheel {tag}, for {python}; make wheel builds it")
        with tempfile.TemporaryDirectory() as folder:
            call(UV, "venv", "--quiet", "--python", python, f"{folder}/venv")
            here = next(path for path in Path(folder).glob("venv/*/python*") if path.stem == "python")
            call(UV, "pip", "install", "--quiet", "--python", here, wheels[-1])
            call(here, "-I", "-W", "error", Path(__file__).with_name("smoke.py"), cwd=folder)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["build", "test"])
    action = parser.parse_args(argv).action
    found = {minor: path for minor in MINORS if (path := interpreter(minor))}
    print("found", *(f"Python 3.{minor}" for minor in found), "only" if len(found) < 4 else "")
    (build if action == "build" else test)(found)


if __name__ == "__main__":
    main()
