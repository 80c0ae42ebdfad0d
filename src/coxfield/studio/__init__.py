"""Label rows by pressing keys: a page in the browser, with a model that answers at once.

`coxfield studio data.csv --target species` opens it for a table, and `open` for arrays. It needs the extra `studio`.
"""

from coxfield.studio.session import open_studio as open  # noqa: A004  # what people expect it to be called

__all__ = ["open"]
