"""What the jobs agree upon, and what others may know of them: records, topics, settings, explanations."""
