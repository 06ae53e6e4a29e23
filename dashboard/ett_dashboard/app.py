"""The entry of the app: Streamlit runs this file for each visit and each refresh of a page."""

import streamlit as st

from ett_dashboard import links
from ett_dashboard.theme import ASSETS, style
from ett_dashboard.views import fleet, job

st.set_page_config(page_title="ettwatch", page_icon=str(ASSETS / "icon.svg"), layout="wide")
st.html(f"<style>{style()}</style>")
links.followed()
page = st.navigation(
    [
        st.Page(fleet.show, title="Fleet", url_path="", default=True, icon=":material/lan:"),
        st.Page(job.show, title="Job", url_path=job.URL_PATH, icon=":material/monitoring:"),
    ],
    position="top",
)
page.run()
