"""Compilation of the core: optimization, the target processor, and separate objects for each instruction set."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from marks import long_but

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent

pytestmark = pytest.mark.long


def tool(name):
    """Return the path of a program in this environment or on the system; skip the test if there is none."""
    path = shutil.which(name, path=BIN) or shutil.which(name)
    return path or pytest.skip(f"{name} is not installed")


def call(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{command}\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
    return result.stdout


def configure(folder, **settings):
    """Configure a build of the core by CMake and return the build folder."""
    settings |= {
        "SKBUILD_PROJECT_NAME": "cprime",
        "Python_EXECUTABLE": sys.executable,
        "CMAKE_MAKE_PROGRAM": tool("ninja"),
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
    }
    call(tool("cmake"), "-S", ROOT, "-B", folder, "-G", "Ninja", *(f"-D{name}={v}" for name, v in settings.items()))
    return folder


def test_the_core_is_compiled_for_speed(tmp_path):
    folder = configure(tmp_path, CMAKE_BUILD_TYPE="Release")
    commands = json.loads((folder / "compile_commands.json").read_text())
    own = [c["command"] for c in commands if Path(c["file"]).parent == ROOT / "cpp"]
    assert len(own) >= len(list((ROOT / "cpp").glob("*.cpp")))
    for command in own:
        assert re.findall(r"(?<=\s)-O\w+", command)[-1] == "-O3", command


def test_a_native_build_has_only_the_kernels_of_this_processor(tmp_path):
    folder = configure(tmp_path, CMAKE_BUILD_TYPE="Release", CPRIME_NATIVE="ON")
    commands = json.loads((folder / "compile_commands.json").read_text())
    sets = {found[1] for c in commands if (found := re.search(r"-DCPRIME_ISA=(\w+)", c["command"]))}
    printed = call(tool("ninja"), "-C", folder, "-t", "targets", "all")
    environment = {name: value for name, value in os.environ.items() if name != "CPRIME_ISA"}
    ask = "from cprime.kernels import instruction_set as best; print(best())"
    best = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, env=environment)
    best = best.stdout.strip()
    assert sets == {best} | ({"avx512f"} if best in ("avx512", "amx") else set())
    assert f"kernels_{best}." in printed


def test_the_fuzzer_of_the_core_fits_its_kernels():
    """The fuzzer compiles, which must be tested because it runs with a special compiler only."""
    fuzzer = ROOT / "reliability" / "core_fuzz.cpp"
    call(tool(os.environ.get("CXX", "c++")), "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'cpp'}", fuzzer)


@pytest.fixture(scope="module")
def unoptimised(tmp_path_factory):
    return configure(tmp_path_factory.mktemp("unoptimised"), CMAKE_BUILD_TYPE="Debug")


@pytest.mark.parametrize(
    "isa",
    long_but(["avx512", "amx"], ["avx2", "avx512f", "avx512", "amx"], mark=pytest.mark.rare),
)
def test_a_higher_instruction_set_offers_its_table_and_nothing_else(isa, unoptimised):
    """Objects of a higher instruction set define no weak function that could replace one of the baseline.

    Without optimization almost nothing is inlined, so such functions would show. As compiled, weak functions of the
    project must be in the namespace of their instruction set; after objcopy, no other weak symbols may remain at all.
    """
    folder, nm = unoptimised, tool("nm")
    linked = re.search(
        r"^build _core\S+: CXX_MODULE_LIBRARY\S+ (.*)", (folder / "build.ninja").read_text(), re.MULTILINE
    )
    objects = [name for name in linked[1].split() if f"kernels_{isa}." in name]
    if not objects:
        pytest.skip("for this processor there is no such set")
    source = "coarse_kernels.cpp" if isa in ("avx512", "amx") else "kernels.cpp"
    compiled = Path("CMakeFiles", f"kernels_{isa}.dir", "cpp", f"{source}.o")
    call(tool("cmake"), "--build", folder, "--target", compiled)
    for name in objects:
        rewriting = call(tool("ninja"), "-C", folder, "-t", "commands", name).splitlines()[-1]
        assert "objcopy" in rewriting
        call("sh", "-c", rewriting)
        for file, ours in ((folder / name, ""), (folder / compiled, "6cprime")):
            symbols = [line.split() for line in call(nm, "--defined-only", file).splitlines()]
            weak = [symbol for *_, kind, symbol in symbols if kind in "WVu" and ours in symbol]
            foreign = [symbol for symbol in weak if f"6cprime{len(isa)}{isa}" not in symbol]
            assert not foreign, f"{file} defines {len(foreign)} functions for all, as {foreign[:5]}"
            assert len(symbols) > 100 or not ours


@pytest.mark.parametrize("target", ["i686-linux-gnu", "aarch64-linux-gnu"])
def test_the_compiler_says_for_which_processor(tmp_path, target):
    folder = configure(tmp_path, CMAKE_CXX_COMPILER=tool(f"{target}-g++"))
    call(tool("cmake"), "--build", folder, "--target", "CMakeFiles/_core.dir/cpp/dispatch.cpp.o")
    commands = json.loads((folder / "compile_commands.json").read_text())
    assert not [c["command"] for c in commands if "-mavx" in c["command"]]


def test_a_python_without_a_global_lock_is_refused(tmp_path):
    """Compilation for a Python without the GIL fails, because the core is not tested there."""
    configure(tmp_path)
    (found,) = [
        unit for unit in json.loads((tmp_path / "compile_commands.json").read_text()) if "module.cpp" in unit["file"]
    ]
    without = found["command"] + " -DPy_GIL_DISABLED=1 -fsyntax-only"
    result = subprocess.run(without, shell=True, cwd=found["directory"], capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "cprime needs a Python with a global interpreter lock" in result.stderr
    call("sh", "-c", f"cd {found['directory']} && {found['command']} -fsyntax-only")
