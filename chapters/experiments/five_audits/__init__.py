"""One image classifier, and every audit of the book turned on it."""
