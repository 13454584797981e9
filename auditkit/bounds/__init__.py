"""What counts prove: from numbers of guesses to a statement about ε.

Here belong the theorems of the papers, as functions from counts (or scores, or propensities) to a
`Bound`, and the trade-off functions they speak of. Nothing here trains or attacks, and nothing
imports more than numpy, scipy and numba: what needs a model fitted, a propensity for example, is
made higher up and handed down as an array.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
