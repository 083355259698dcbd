"""Memory that the container of this process (its control group, in Linux) still allows."""

from pathlib import Path

_ROOT, _GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_NO_LIMIT = 2**60  # version 1 writes a number of this order where there is no limit


def container_memory() -> int | None:
    """Return the bytes that the process may still take before its container's limit, or None without such a limit.

    Files that the system caches do not count as taken. The least limit holds, of the group and of those above it.
    """
    try:
        groups = [line.split(":", 2) for line in _GROUPS.read_text().splitlines()]
    except OSError:  # other systems than Linux
        return None
    left = []
    for _, controllers, path in groups:
        if not controllers:
            folder, limit, taken = _ROOT, "memory.max", "anon"
        elif "memory" in controllers.split(","):
            folder, limit, taken = _ROOT / "memory", "memory.limit_in_bytes", "total_rss"
        else:
            continue
        here = folder / path.lstrip("/")
        for group in (here, *here.parents[: len(here.parts) - len(folder.parts)]):
            most = _content(group / limit).strip()
            if most.isdigit() and int(most) < _NO_LIMIT:
                used = dict(line.split() for line in _content(group / "memory.stat").splitlines())
                left.append(max(0, int(most) - int(used.get(taken, 0))))
    return min(left, default=None)


def _content(path: Path) -> str:
    """Return a file's content; empty if it does not exist, as in a container that sees only its own group's files."""
    try:
        return path.read_text()
    except OSError:
        return ""
