"""Tells people of incidents: reads the topic of incidents, decides what is new for each channel, and sends it there."""
