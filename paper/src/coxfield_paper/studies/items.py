"""All items that `coxfield reproduce` can make: those of the paper in its order, then those beyond it."""

from coxfield_paper.report.item import Item
from coxfield_paper.studies import (
    circles,
    few_labels,
    helix,
    inference,
    learning,
    lgcp_samples,
    mixtures,
    mnist,
    permanental,
    questions,
    samplers,
    semi_supervised,
    supervised,
    timings,
)

ITEMS: dict[str, Item] = {
    item.name: item
    for item in (
        lgcp_samples.ITEM,
        circles.ITEM,
        supervised.ITEM,
        mnist.ITEM,
        helix.ITEM,
        *semi_supervised.ITEMS,
        timings.ITEM,
        permanental.ITEM,
        inference.ITEM,
        learning.ITEM,
        mixtures.ITEM,
        few_labels.ITEM,
        questions.ITEM,
        samplers.ITEM,
    )
}


def choose(names: list[str] | None) -> list[Item]:
    """The items of these names; all items if there is no name, or for the name `all`."""
    wanted = dict.fromkeys(names or ["all"])
    unknown = [name for name in wanted if name != "all" and name not in ITEMS]
    if unknown:
        raise ValueError(f"there is no item {unknown[0]!r}: choose among all, {', '.join(ITEMS)}")
    return list(ITEMS.values()) if "all" in wanted else [ITEMS[name] for name in wanted]
