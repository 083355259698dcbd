"""Model files, and checkpoints from which an interrupted fit can be resumed with a bit-identical result."""
