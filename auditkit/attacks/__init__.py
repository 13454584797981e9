"""What the adversary does: from a mechanism's output to one score an example.

Here belong membership and label inference, by one model or many, canaries, poisons and generated
non-members. An attack ends with scores; how well they tell members apart is said in `bounds.roc`,
how many guesses are made of them in `thresholds`, and what these prove in `bounds`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
