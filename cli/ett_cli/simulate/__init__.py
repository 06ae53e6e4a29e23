"""A simulated fleet: the events that training jobs of any number and size would have written.

Pure and deterministic: a scenario with its seed gives the same events, byte for byte. No clock and
no I/O in here except in `sinks`; nothing is kept of a job but what it needs to go on. Beside the
events stands the truth (`truth`): where the time of each job went, kept by whoever invents it and
not by the accounting.
"""
