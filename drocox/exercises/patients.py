"""Six patients who are met again in every chapter of parts I and II, and in the course."""

import pandas as pd

# months in sight, death, one feature, a group
SIX = pd.DataFrame(
    {
        "time": [2.0, 3.0, 5.0, 8.0, 9.0, 12.0],
        "event": [True, False, True, True, False, True],
        "x": [2.0, 1.0, 0.0, 1.0, -1.0, -1.0],
        "group": ["a", "b", "a", "b", "a", "b"],
    },
    index=pd.Index(list("ABCDEF"), name="patient"),
)
