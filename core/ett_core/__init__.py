"""The language that every part of ettwatch speaks: events, components, accounting."""
