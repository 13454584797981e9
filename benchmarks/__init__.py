"""Speed against the naive way and against peers, measured in one run: `make bench`."""
