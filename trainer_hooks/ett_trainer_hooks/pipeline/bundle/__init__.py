"""Compiled code that outlives the process: bundles of what torch.compile made, complete and checked.

| file | what it is for |
|---|---|
| `fingerprint` | the facts of an environment that compiled code depends on |
| `entry`, `contents` | what a bundle is: a signed entry, and an archive named by its hash |
| `trust` | whose bundles may be loaded |
| `files`, `store`, `eviction` | where bundles lie, locally or by URL, and how many |
| `native`, `compiler` | what is taken from torch and given to it |
| `settings`, `process`, `usage` | one process and its bundle, and what is told of it |
| `relay`, `sharing` | one compilation a node |
| `patience` | work that may hang, for a bounded time |
"""
