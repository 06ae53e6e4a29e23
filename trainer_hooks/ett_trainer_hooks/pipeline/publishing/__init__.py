"""A model published from its last checkpoint, by a process that is not the trainer.

`handover` is the agreement of the two sides and needs no torch; `serving` is for whoever uses what was
published.
"""
