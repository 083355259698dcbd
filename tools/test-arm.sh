#!/usr/bin/env bash
# The contracts of the kernels on emulated 64-bit ARM. Needs Debian's g++-aarch64-linux-gnu, qemu-user-static and
# mmdebstrap; keeps what it has made in build/arm. Arguments are handed to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$PWD/build/arm bin=$PWD/.venv/bin
for tool in aarch64-linux-gnu-g++ qemu-aarch64-static mmdebstrap; do
    command -v $tool > /dev/null || { echo "test-arm: $tool is missing" >&2; exit 1; }
done
mkdir -p "$folder"

# Python 3.11 of Debian, unpacked but not configured, so that nothing has to run there; its libraries are wheels.
if [ ! -e "$folder/root/usr/bin/python3.11" ]; then
    mmdebstrap --variant=extract --architectures=arm64 --include=python3,libstdc++6 bookworm "$folder/root"
fi
if [ ! -e "$folder/site.stamp" ] || [ pyproject.toml -nt "$folder/site.stamp" ]; then
    "$bin/python" -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > "$folder/needs.txt"
    "$bin/uv" pip install --quiet --target "$folder/site" --python-platform aarch64-manylinux_2_28 --python-version 3.11 \
        --only-binary :all: --requirement "$folder/needs.txt" pytest hypothesis
    touch "$folder/site.stamp"
fi

# Of Python's headers only what is the same on all 64-bit Linux systems is used.
"$bin/python" -c "import sys; sys.exit(sys.version_info[:2] != (3, 11) and 'test-arm: .venv has to be of Python 3.11, as is the emulated one')"
"$bin/cmake" -S . -B "$folder/core" -G Ninja -DCMAKE_MAKE_PROGRAM="$bin/ninja" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
    -DSKBUILD_PROJECT_NAME=cprime -DPython_EXECUTABLE="$bin/python" > "$folder/configure.log"
"$bin/cmake" --build "$folder/core"
rm -rf "$folder/package"
mkdir -p "$folder/package"
cp -r src/cprime "$folder/package/"
rm -f "$folder"/package/cprime/_core*.so
cp "$folder"/core/_core*.so "$folder/package/cprime/_core.so"

export PYTHONPATH="$folder/package:$folder/site" PYTHONDONTWRITEBYTECODE=1
python=(qemu-aarch64-static -L "$folder/root" "$folder/root/usr/bin/python3.11")
"${python[@]}" -c "import platform; from cprime.kernels import instruction_set; print(platform.machine(), instruction_set())"
# Tests that start the interpreter again, or a compiler, would start them without the emulator.
exec "${python[@]}" -m pytest -p no:cacheprovider tests/contracts -m "not long" \
    --ignore tests/contracts/test_kernel_instruction_sets.py --ignore tests/contracts/test_kernel_memory.py \
    --ignore tests/contracts/test_emulated_tiles.py "$@"
