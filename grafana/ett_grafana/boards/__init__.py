"""The boards: one module each, with a function `board(config)`."""
