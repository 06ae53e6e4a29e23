"""How a publishing process ends, as the `sysexits` of old name it."""

PUBLISHED = 0
AGAIN = 75
"""Trying again may help."""
NEVER = 65
"""It does not help: the hand-over has its outcome."""
