"""The command line, one file a command: it parses, calls and prints; the work is done elsewhere.

Anything heavy is imported inside the commands, so that `coxfield --help` answers at once.
"""
