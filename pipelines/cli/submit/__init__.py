"""What ``spark-submit`` is given to run `newnormal`."""
