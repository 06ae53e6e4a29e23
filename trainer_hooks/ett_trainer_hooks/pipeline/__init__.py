"""The optimised pipeline: parts that make a job start, recover and save faster.

Every part is a module of its own that a trainer can adopt alone. None of them changes what the
model learns; each tells what it did through the recorder.
"""
