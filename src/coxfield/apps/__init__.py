"""What people look at: the command line, the experiments, the report."""
