"""The Fleet page apart from its drawing: what it asks, how it weighs, its figures and words. Pure."""
