"""The container image: its Dockerfile, and the small programs that it runs while it is built and afterwards."""
