"""Checkpoints: a folder from which a fit that has died goes on, to the same bits."""

from cprime.checkpoints.folder import FIT, MODEL, Checkpoint, Runs, opened, read, standing

__all__ = ["FIT", "MODEL", "Checkpoint", "Runs", "opened", "read", "standing"]
