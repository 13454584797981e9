"""Auditing differential privacy: from what an attack leaves to what it proves.

The rooms are the steps of one path. A mechanism is run (`mechanisms`), an attack scores
(`attacks`), guesses are counted (`evidence`, `thresholds`), a bound is stated (`bounds`), a figure
is drawn (`figures`). The public names load when they are first used, so that importing the package
costs next to nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
