#!/usr/bin/env bash
# Whether every source of the core compiles for systems that are not at hand, by the clang of zig, which brings their
# headers. Nothing is linked or run. Arguments name the systems; without any, all are tried.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=$PWD/.venv/bin folder=$PWD/build/cross
systems=("$@")
[ $# -gt 0 ] || systems=(x86_64-windows-gnu aarch64-macos x86_64-macos x86_64-linux-musl aarch64-linux-musl)
[ -e "$folder/ziglang" ] || "$bin/uv" pip install --quiet --python "$bin/python" --target "$folder" ziglang
zig=$folder/ziglang/zig
nanobind=$("$bin/python" -m nanobind --include_dir)

# Python's own headers; pyconfig.h is of the system that Python was built on, and what differs there is put right.
headers=$("$bin/python" -c "import sysconfig; print(sysconfig.get_path('include'))")
options=(-std=c++20 -c -O0 -o "$folder/object" -Wall -Wextra -Werror -Icpp -isystem "$nanobind" -DNB_DOMAIN=cprime)

failed=0
for system in "${systems[@]}"; do
    python=$headers
    if [[ $system == *windows* ]]; then
        python=$folder/windows-headers
        rm -rf "$python" && cp -r "$headers" "$python"
        printf '%s\n' '#define SIZEOF_VOID_P 8' '#define SIZEOF_SIZE_T 8' '#define SIZEOF_INT 4' '#define SIZEOF_LONG 4' \
            '#define SIZEOF_LONG_LONG 8' '#define SIZEOF_SHORT 2' '#define SIZEOF_WCHAR_T 2' '#define SIZEOF_FLOAT 4' \
            '#define SIZEOF_DOUBLE 8' '#define ALIGNOF_MAX_ALIGN_T 8' '#define HAVE_STDINT_H 1' '#define HAVE_UINTPTR_T 1' \
            '#define MS_WINDOWS 1' '#define MS_WIN64 1' '#define HAVE_DYNAMIC_LOADING 1' '#define NT_THREADS 1' \
            '#include <basetsd.h>' 'typedef SSIZE_T Py_ssize_t;' '#define HAVE_PY_SSIZE_T 1' \
            '#define PY_SSIZE_T_MAX 0x7fffffffffffffffLL' > "$python/pyconfig.h"
    fi
    has=() sets=("baseline ")
    if [[ $system == x86_64* && $system != *windows* ]]; then
        avx512="-mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma"
        has=(-DCPRIME_HAS_AVX2 -DCPRIME_HAS_AVX512F -DCPRIME_HAS_AVX512)
        sets+=("avx2 -mavx2 -mfma" "avx512f $avx512" "avx512 $avx512 -mavx512vnni")
        [[ $system != *linux* ]] || { has+=(-DCPRIME_HAS_AMX) && sets+=("amx $avx512 -mavx512bf16 -mamx-tile -mamx-bf16"); }
    fi
    try() { "$zig" c++ -target "$system" "${options[@]}" -isystem "$python" "$@" || { echo "$system: $* FAILED"; failed=1; }; }
    for source in cpp/*.cpp; do
        [[ "$source" = cpp/*kernels.cpp ]] || try "${has[@]}" "$source"
    done
    for set in "${sets[@]}"; do
        read -r name flags <<< "$set"
        source=cpp/kernels.cpp
        [[ $name = baseline || $name = avx2 || $name = avx512f ]] || source=cpp/coarse_kernels.cpp
        try -DCPRIME_ISA="$name" $flags "$source"
    done
    echo "$system: done"
done
exit $failed
