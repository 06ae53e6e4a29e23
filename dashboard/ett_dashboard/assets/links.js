// Follows links of class `ett-go` to other pages of the app without loading the document again.
// The address changes first, then Streamlit goes there as it follows the browser's back button: on
// that way it stops the refreshes of the page that is left before it asks for the new one. After a
// switch that the server makes, a refresh of the old page may arrive during the first run of the
// new one, and empties it for good. Other buttons and keys do what they do on any link.

function follow(event) {
  const link = event.target.closest?.("a.ett-go");
  const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !plain || event.defaultPrevented) return;
  event.preventDefault();
  go(link.href);
}

function go(address) {
  window.history.pushState({}, "", new URL(address, document.baseURI));
  window.dispatchEvent(new PopStateEvent("popstate"));
}

export default function ({ data }) {
  if (!window.ettFollows) document.addEventListener("click", follow);
  window.ettFollows = true;
  if (data.href && window.ettWent !== data.number) {
    window.ettWent = data.number;
    go(data.href);
  }
}
