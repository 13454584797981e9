"""Small networks, many trained at once, frozen encoders, and a language model that is tuned.

Here belong architectures and the training of thousands of them as one tensor program. Private
training is a mechanism and belongs to `mechanisms`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
