"""A fleet as any server of the HTTP query API of Prometheus knows it: where no exporter can be reached."""
