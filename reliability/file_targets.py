"""Functions that the file fuzzer calls with bytes. Each reads them as one kind of file.

This must end in rows, in a model, or in an error that says what is wrong with the file.
"""

import json
import tempfile
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

NAMED = (ValueError, TypeError, OSError)
MOST = 2**20  # numbers that are read from one table; a header may promise more
SUFFIXES = (".csv", ".npy", ".npz", ".parquet", ".arrow", ".fvecs", ".bvecs", ".fbin", ".u8bin", ".i8bin")

_ROWS = np.array([[0.0, 1.0], [1.5, -2.0], [9.0, 8.0], [9.5, 7.0], [np.pi, 0.25], [4.0, 4.0]])
_BETWEEN = b"\0\xffhead\xff\0"
_folder = Path(tempfile.mkdtemp(prefix="cprime-files-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))


def model(content: bytes) -> None:
    """Load a model file with exactly these bytes; a loaded model predicts, or raises a clear error."""
    import cprime

    path = _folder / "model.safetensors"
    path.write_bytes(content)
    try:
        estimator = cprime.load(path)
    except NAMED:
        return
    width = getattr(estimator, "n_features_in_", 2)
    if not isinstance(width, int) or not 0 < width < 1000:
        return
    try:
        estimator.predict(np.zeros((3, width)))
    except NAMED:
        return


def header(content: bytes) -> None:
    """Load a model file whose header length is correct; content: the header's JSON, a byte 0, and the tensors."""
    text, _, tensors = content.partition(b"\0")
    model(len(text).to_bytes(8, "little") + text + tensors)


def checkpoint(content: bytes) -> None:
    """Resume from a checkpoint folder with correct checksums.

    content: `fit.safetensors` and, after a separator, the head of a state; each is a JSON header, a byte 0, and
    tensors.
    """
    import cprime
    from cprime.persistence import checkpoints

    folder = _folder / "checkpoint"
    state = folder / "state-00000001"
    state.mkdir(parents=True, exist_ok=True)
    parts = content.split(_BETWEEN, 1)
    for path, part in zip((folder / "fit.safetensors", state / "head.safetensors"), (*parts, b""), strict=False):
        text, _, tensors = part.partition(b"\0")
        whole = len(text).to_bytes(8, "little") + text + tensors
        path.write_bytes(whole + blake2b(whole, digest_size=16).digest())
    checkpoints.standing(folder)
    try:
        checkpoints.read(folder)
        cprime.resume(folder)
    except NAMED:
        return


def table(content: bytes) -> None:
    """Read a table; the first byte selects the format, and the rest is the file."""
    import cprime

    if not content:
        return
    path = _folder / f"table{SUFFIXES[content[0] % len(SUFFIXES)]}"
    path.write_bytes(content[1:])
    try:
        source = cprime.open_data(path)
        rows = min(source.n_rows, MOST // source.n_features)
        X = source.read(0, rows)
        source.check_finite(X, 0)
        source.take([rows - 1, 0])
        for columns in ([source.n_features - 1], [0, 0]):
            source.select(columns).read(0, min(rows, 10))
        source.verify()
    except NAMED:
        return
    if X.shape != (rows, source.n_features) or not np.isfinite(X).all():
        raise AssertionError(f"{X.shape} rows, {source.n_rows} x {source.n_features} promised, or not all finite")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "model": model,
    "header": header,
    "checkpoint": checkpoint,
    "table": table,
}


def seeds(target: str) -> list[bytes]:
    """Return small valid files as first inputs of the fuzzer."""
    if target in ("model", "header"):
        found = [_parted(content) if target == "header" else content for content in _models()]
        return found + [_unsealed(content) for content in found if target == "header"]
    return _checkpoints() if target == "checkpoint" else _tables()


def _models() -> list[bytes]:
    import cprime
    from cprime.search import Papers

    found, path = [], _folder / "seed.safetensors"
    for estimator in (
        cprime.KMeans(2, random_state=0),
        cprime.KMeans(3, search=Papers(n_neighbors=2), random_state=0),
        *(cprime.GaussianMixture(2, covariance_type=kind, random_state=0) for kind in ("full", "tied", "diag")),
        cprime.SoftKMeans(2, random_state=0),
        cprime.FuzzyKMeans(2, random_state=0),
        cprime.KMedoids(2),
        cprime.XMeans(max_clusters=2),
    ):
        estimator.fit(_ROWS).save(path)
        found.append(path.read_bytes())
    cprime.KMeans1D(2).fit(_ROWS[:, :1]).save(path)
    return [*found, path.read_bytes()]


def _parted(content: bytes) -> bytes:
    """Return a model file's bytes as header, a byte 0, tensors."""
    size = int.from_bytes(content[:8], "little")
    return content[8 : 8 + size].rstrip() + b"\0" + content[8 + size :]


def _unsealed(content: bytes) -> bytes:
    """Return a model in file format 1, which has no checksum."""
    text, _, tensors = content.partition(b"\0")
    values = json.loads(text)
    values["__metadata__"].pop("checksum", None)
    values["__metadata__"]["format_version"] = "1"
    return json.dumps(values, separators=(",", ":")).encode() + b"\0" + tensors


def _checkpoints() -> list[bytes]:
    """Return checkpoint folders of interrupted fits as bytes."""
    import cprime

    found = []
    for number, estimator in enumerate(
        (
            cprime.KMeans(2, random_state=0),
            cprime.GaussianMixture(2, random_state=0),
            cprime.SoftKMeans(2, random_state=0),
        )
    ):
        folder = _folder / f"seed-{number}"
        estimator.set_params(checkpoint=str(folder), callbacks=_stop)
        try:
            estimator.fit(_ROWS)
        except KeyboardInterrupt:
            parts = [folder / "fit.safetensors", *folder.glob("state-*/head.safetensors")]
            found.append(_BETWEEN.join(_parted(part.read_bytes()[:-16]) for part in parts))
    return found


def _stop(row: dict[str, Any]) -> None:
    if row["iteration"] > 1 if "iteration" in row else True:
        raise KeyboardInterrupt


def _tables() -> list[bytes]:
    import pyarrow as pa
    from pyarrow import feather, parquet

    path, table = _folder / "seed", pa.table({"a": _ROWS[:, 0], "b": _ROWS[:, 1].astype(np.float32)})

    def npy(X: np.ndarray) -> bytes:
        with open(path, "wb") as file:
            np.save(file, X)
        return path.read_bytes()

    def npz(X: np.ndarray) -> bytes:
        with open(path, "wb") as file:
            np.savez(file, X=X)
        return path.read_bytes()

    def written(write: Callable[..., Any], **options: Any) -> bytes:
        write(table, path, **options)
        return path.read_bytes()

    X = _ROWS.astype("<f4")
    vecs = b"".join(np.int32(2).tobytes() + row.tobytes() for row in X)
    bytes_ = b"".join(np.int32(2).tobytes() + row.astype(np.uint8).tobytes() for row in X)
    size = np.array(X.shape, "<u4").tobytes()
    files = {
        ".csv": [b"a,b\n1,2\n3,4.5\n-1e3,nan\n", b"1,2\n3,4\n", b'"x,""y",z\r\n1,2\r\n,3\r\n', b"0;1\n"],
        ".npy": [npy(_ROWS), npy(np.asfortranarray(X)), npy(np.arange(6, dtype=">i2").reshape(3, 2))],
        ".npz": [npz(_ROWS)],
        ".parquet": [written(parquet.write_table), written(parquet.write_table, row_group_size=2, compression="zstd")],
        ".arrow": [written(feather.write_feather, compression="uncompressed"), written(feather.write_feather)],
        ".fvecs": [vecs],
        ".bvecs": [bytes_],
        ".fbin": [size + X.tobytes()],
        ".u8bin": [size + X.astype(np.uint8).tobytes()],
        ".i8bin": [size + X.astype(np.int8).tobytes()],
    }
    return [bytes([SUFFIXES.index(suffix)]) + content for suffix, all_ in files.items() for content in all_]
