"""Logs of jobs that were never instrumented, turned into events.

Pure parsers, one module a format: from lines or records to events and to the rows that could not be
used, each with its line and the reason. They hold no clock and open no file. What a log does not
tell is left out, so that the accounting calls it unobserved.
"""
