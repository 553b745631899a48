"""What a job is: values that say what is read, computed and written. Nothing here computes."""
