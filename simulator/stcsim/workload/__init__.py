"""Problems and their operand patterns, real or generated; knows nothing of formats."""
