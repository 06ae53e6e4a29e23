"""A model published from its last checkpoint, by a process that is not the trainer.

`handover` and `takes` are the agreement of the two sides and need no torch; `serving` is for whoever uses
what was published.
"""
