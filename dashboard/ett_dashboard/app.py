"""The entry of the app: Streamlit runs this file for each visit and each refresh of a page."""

import streamlit as st

from ett_dashboard import links
from ett_dashboard.theme import ASSETS, style
from ett_dashboard.views import address
from ett_dashboard.views.page import above
from ett_dashboard.views.pages import PAGES

st.set_page_config(page_title="ettwatch", page_icon=str(ASSETS / "icon.svg"), layout="wide")
st.html(f"<style>{style()}</style>")
address.begin()
links.followed()
chosen = st.navigation([page.as_streamlit() for page in PAGES], position="hidden")
above(PAGES, chosen.url_path)
chosen.run()
