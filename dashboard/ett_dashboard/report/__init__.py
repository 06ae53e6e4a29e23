"""Reports of a job or of a fleet in one file of HTML that opens without a network."""
