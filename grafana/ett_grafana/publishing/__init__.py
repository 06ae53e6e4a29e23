"""Publishing over Grafana's HTTP API: look at what is there, say what would change, then change it.

Used from one thread. `connection` is the only module that knows how Grafana is reached; `boards`,
`others` and `marks` look at what is there and make steps; `push` puts the steps of a push in order.
"""
