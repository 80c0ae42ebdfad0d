"""The paper, computed again: studies that compute, records that are kept, and the page that shows them.

It adds the command `reproduce` to `coxfield`.
"""
