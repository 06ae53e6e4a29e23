"""The parts of `ett demo`: a real job, a real kill, and everything that watches it."""
