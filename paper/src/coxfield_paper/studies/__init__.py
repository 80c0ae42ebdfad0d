"""The tables and figures of the paper, one file each: `run` computes records, `render` or the caller shows them."""
