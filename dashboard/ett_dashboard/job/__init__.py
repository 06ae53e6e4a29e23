"""The parts of the Job page beyond its partition: starts, recoveries, ranks, checkpoints, throughput."""
