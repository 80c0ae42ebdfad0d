"""`python -m coxfield.cli`: the `coxfield` command where no script is installed."""

from coxfield.cli.app import main

main()
