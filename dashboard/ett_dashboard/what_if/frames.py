"""What-if answers to tables. Pure."""

from __future__ import annotations

import pandas as pd
from msgspec.structs import replace

from ett_core.components import COMPONENTS
from ett_dashboard.what_if.rows import Sum, WhatIf
from ett_dashboard.what_if.words import title
from ett_dashboard.words import HOUR_S


def priced(found: WhatIf, price_per_hour: float) -> WhatIf:
    """An answer in accelerator-seconds as money."""
    price = price_per_hour / HOUR_S

    def paid(amounts: Sum) -> Sum:
        components = {name: price * amount for name, amount in amounts.components.items()}
        return replace(amounts, total=price * amounts.total, components=components)

    return replace(
        found,
        weight="cost",
        now=paid(found.now),
        together=paid(found.together),
        saved=price * found.saved,
        overlap=price * found.overlap,
        alone=[replace(row, saved=price * row.saved) for row in found.alone],
    )


def levers_frame(found: WhatIf) -> pd.DataFrame:
    """Each lever alone, in the order given: saved time as weighted, shares in percent."""
    rows = [
        (
            title(row.key),
            row.saved,
            None if row.effective_ratio is None else 100 * row.effective_ratio,
            None if row.gain_ratio is None else 100 * row.gain_ratio,
            row.key in found.levers,
            row.supposes,
            row.key,
        )
        for row in found.alone
    ]
    names = ["Lever", "Saved", "ETT alone", "Gain", "Chosen", "Supposes", "Key"]
    return pd.DataFrame(rows, columns=names).astype({"ETT alone": "float64", "Gain": "float64"})


def parts_frame(found: WhatIf) -> pd.DataFrame:
    """The partition as it is and with the levers together, component by component."""
    now, then = found.now.components, found.together.components
    rows = [
        (name, now.get(name, 0.0), then.get(name, 0.0), now.get(name, 0.0) - then.get(name, 0.0))
        for name in COMPONENTS
        if name in now or name in then
    ]
    return pd.DataFrame(rows, columns=["component", "now", "together", "saved"])
