"""Journals carried to an exporter, by a launcher or `ett ship`, and removed once it holds them."""
