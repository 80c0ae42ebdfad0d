"""Windows: the bounded sets in which points are observed, and the rules that integrate over them."""
