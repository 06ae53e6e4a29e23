"""The reference trainer as a command: its configuration and how its ranks are started."""
