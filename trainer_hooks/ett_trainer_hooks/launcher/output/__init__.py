"""The output of a command: followed as it grows, kept by rank, searched for what explains a failure."""
