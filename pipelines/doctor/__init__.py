"""Looks at an installation and at what runs, and says what is wrong and what to do; it changes nothing.

A check is a function from a `Context` to findings. The checks of one subject are in one folder: `environment`,
`jobs` (the state directory), `kafka`, `elasticsearch`. `examination` makes them all.
"""
