"""`dryrack scenario` and `dryrack demo`: scenarios run, shown and judged."""
