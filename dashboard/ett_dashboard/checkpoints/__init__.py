"""Checkpoint intervals: questions, tables, figures and words."""
