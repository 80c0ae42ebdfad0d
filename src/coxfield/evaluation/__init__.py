"""Is it right? Measures of what probabilities are worth."""
