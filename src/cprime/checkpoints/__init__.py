"""Checkpoints: folders from which an interrupted fit can be resumed, with a bit-identical result."""

from cprime.checkpoints.folder import FIT, MODEL, WARM, Checkpoint, Runs, opened, read, standing
from cprime.checkpoints.place import Place, output_of

__all__ = ["FIT", "MODEL", "WARM", "Checkpoint", "Place", "Runs", "opened", "output_of", "read", "standing"]
