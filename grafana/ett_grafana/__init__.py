"""Boards and rules as code."""
