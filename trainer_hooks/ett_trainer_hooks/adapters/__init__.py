"""One module a library that trainers are written with; each imports its library, this one nothing."""
