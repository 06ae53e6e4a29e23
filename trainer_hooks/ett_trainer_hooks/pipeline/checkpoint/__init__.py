"""Checkpoints that do not lie: committed whole, checked before use, kept as long as is wanted.

`store` and the modules below it need no torch.
"""
