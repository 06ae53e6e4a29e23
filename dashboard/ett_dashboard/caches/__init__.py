"""Compile caches of runs: questions, tables, figures and words."""
