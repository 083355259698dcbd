"""Checkpoints: a folder from which a fit that has died goes on, to the same bits."""

from cprime.checkpoints.folder import MODEL, Checkpoint, Runs, opened, read

__all__ = ["MODEL", "Checkpoint", "Runs", "opened", "read"]
