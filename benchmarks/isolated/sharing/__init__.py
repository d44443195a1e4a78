"""Who shares the GPU with whom, how it is measured, and the tables."""
