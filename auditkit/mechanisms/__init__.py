"""What is audited: mechanisms that claim to be private, and the exact laws of what they release.

Here belong randomised response and its relatives, DP-SGD, voting among teachers and noisy sums. A
mechanism knows nothing of the attack that will meet it, and states no bound.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
