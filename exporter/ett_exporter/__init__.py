"""One service: takes in events, keeps them, and answers `/metrics` and the query API."""
