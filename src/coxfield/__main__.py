"""`python -m coxfield`: the `coxfield` command where no script is installed."""

from coxfield.apps.cli.app import main

main()
