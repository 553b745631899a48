"""Checks that ask Elasticsearch: its health and disk, our indices, templates and aliases, and its clock."""
