"""The experiments of the chapter on audits without a run of one's own."""
