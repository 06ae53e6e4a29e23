"""One module a library that trainers are written with; each imports its library, this one nothing.

For programs: `dcp`, `torchrec`, `torchtitan`, `lightning`, `huggingface`. The others serve these:
`process` and `stages` what all callbacks of a process share, `seams` functions put around methods,
`lightning_run` what has no callback in Lightning, `evaluation_sets` and `sizes`.
"""
