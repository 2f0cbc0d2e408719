"""What answers look like, for the description of the API. The tests hold every answer they get against it."""
