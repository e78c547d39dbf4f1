"""Change data capture feeds into Delta tables: what SQL cannot say well, and the command `delta-cdc`."""
