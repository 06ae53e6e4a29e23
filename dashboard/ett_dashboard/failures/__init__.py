"""What the page of failures is made of: rows of the API, tables, figures, words. Pure."""
