"""What judges metrics: the models of single series and of whole machines, in event-time windows."""
