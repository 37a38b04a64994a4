"""Nodes: played if they are virtual, watched over in any case."""
