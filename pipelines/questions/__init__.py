"""Questions in words: what a program that speaks MCP may ask, answered by the functions that answer commands."""
