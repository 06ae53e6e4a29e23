"""The Streamlit app, over the exporter's query API."""
