"""Starts the wrapper of a point with any Python 3.10: its package lies beside this file."""

import sys

from crowdperf.sweeps.wrapper import main

if __name__ == "__main__":
    sys.exit(main())
