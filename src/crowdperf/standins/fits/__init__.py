"""One module for each small network made here, a program: `python3 -m crowdperf.standins.fits.<name> --help`."""
