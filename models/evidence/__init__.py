"""Evidence channels: each turns what was seen into -ln of a tail probability under one idea of normal."""
