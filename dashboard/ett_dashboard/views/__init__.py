"""The pages of the app; each has `show()`, which Streamlit calls for every visit."""
