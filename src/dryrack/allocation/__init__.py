"""Claims, slices and what is in use go in; an allocation comes out, or the reasons there is none."""
