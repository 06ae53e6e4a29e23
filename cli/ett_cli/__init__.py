"""The command `ett`: reads arguments and files, calls the other packages, prints."""
