// Runs in the document, before Streamlit: see `document.py`. What is seen first is painted before scripts that
// take their time begin, and stays, scrolled as it is, until the app has drawn what it stands for.

{
  const { app, until } = document.currentScript.dataset;
  const first = document.getElementById("ett-first");
  const UNSEEN_MS = 200; // nothing is painted of a page that nobody looks at
  const LONGEST_MS = 60000;
  let hasBegun = false;

  const begin = () => {
    if (!hasBegun) import(app);
    hasBegun = true;
  };
  const leave = () => {
    watch.disconnect();
    document.querySelector(".stMain")?.scrollTo(0, first.scrollTop);
    first.remove();
  };
  const watch = new MutationObserver(() => document.querySelector(until) && leave());

  watch.observe(document.body, { subtree: true, childList: true, attributeFilter: ["data-drawn"] });
  requestAnimationFrame(() => setTimeout(begin));
  setTimeout(begin, UNSEEN_MS);
  setTimeout(() => first.isConnected && leave(), LONGEST_MS);
}
