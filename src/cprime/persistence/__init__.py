"""Model files, and checkpoints from which an interrupted fit can be resumed with a bit-identical result.

A checkpoint (`checkpoints.py`) is a folder of complete states. For each state the active sets of each chunk are written
first, then the head file. Files are written under a temporary name, synced and renamed. Values are written as JSON and
tensors (`_utils/storable.py`). A state is written if the time since the last one justifies the cost. Because passes are
deterministic, a resumed fit repeats the passes since then.
"""
