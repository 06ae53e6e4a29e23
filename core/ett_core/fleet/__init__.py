"""What holds across attempts and jobs: losses, crash loops, suspect nodes, outbreaks, slower parts. Pure."""
