"""Everything that runs inside or beside a training process."""
