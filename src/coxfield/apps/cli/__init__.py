"""The command line, one file per command. It parses, calls and prints; other modules do the work.

Heavy packages are imported inside the commands, so that `coxfield --help` answers at once.
"""
