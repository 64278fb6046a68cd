"""One module for each data set that is made here, a program: `python3 -m crowdperf.standins.datasets.<name> --help`."""
