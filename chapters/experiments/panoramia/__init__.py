"""The experiments of the chapter on audits with generated examples."""
