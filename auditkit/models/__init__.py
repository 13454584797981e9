"""Small networks, many trained at once, and frozen encoders.

Here belong architectures and the training of thousands of them as one tensor program. Private
training is a mechanism and belongs to `mechanisms`.
"""
