"""The incidents job: groups the novelties of a site over series, machines and time."""
