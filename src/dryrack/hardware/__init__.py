"""What devices exist where, and what is wrong with how they are described."""
