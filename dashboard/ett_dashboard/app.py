"""The entry of the app: Streamlit runs this file for each visit and each refresh of a page."""

import streamlit as st

from ett_dashboard import links
from ett_dashboard.theme import ASSETS, style
from ett_dashboard.views import failures, fleet, job, regressions

st.set_page_config(page_title="ettwatch", page_icon=str(ASSETS / "icon.svg"), layout="wide")
st.html(f"<style>{style()}</style>")
links.followed()
page = st.navigation(
    [
        st.Page(fleet.show, title="Fleet", url_path="", default=True, icon=":material/lan:"),
        st.Page(job.show, title="Job", url_path=job.URL_PATH, icon=":material/monitoring:"),
        st.Page(failures.show, title="Failures", url_path=failures.URL_PATH, icon=":material/error:"),
        st.Page(
            regressions.show,
            title="Regressions",
            url_path=regressions.URL_PATH,
            icon=":material/trending_up:",
        ),
    ],
    position="top",
)
page.run()
