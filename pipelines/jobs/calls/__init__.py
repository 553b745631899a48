"""The job `calls`: which service calls which, from the spans of traces."""
