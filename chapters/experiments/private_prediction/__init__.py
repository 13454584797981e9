"""The experiments of the chapter on auditing private prediction."""
