"""What the page of regressions is made of: rows of the API, tables, figures, words. Pure."""
