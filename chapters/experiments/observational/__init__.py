"""The experiments of the chapter on observational audits of label privacy."""
