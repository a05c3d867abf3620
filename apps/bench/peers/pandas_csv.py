"""pandas' C engine: reads a CSV file."""
import sys

import pandas

from lines import answer_steps

answer_steps(lambda _: pandas.read_csv(sys.argv[1], engine="c"))
