"""The judge of metrics: models of single series and of whole machines, in event-time windows."""
