"""A small, real TorchRec trainer under observation: the example to copy hook calls from.

Run one process a device: `torchrun --nproc-per-node 2 -m ett_trainer_hooks.reference --steps 400`.
"""
