"""The experiments of the chapter on add/remove and substitute adjacency."""
