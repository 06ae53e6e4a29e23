"""Alerts: when somebody should look, and at what. `rules.alerts` has them all."""
