"""Followers of jobs: connections that stay open while something goes on, and hold no thread of the web server.

takeover.py takes a connection from the web server, hub.py writes to all of them from one thread, framing.py, sse.py and
websocket.py say in which words, watch.py and rounds.py look at the rows once for everybody. Knows nothing of flask."""
