// Follows links of class `ett-go` to other pages of the app without loading the document again.
// The address changes first, then Streamlit goes there as it follows the browser's back button: on
// that way it stops the refreshes of the page that is left before it asks for the new one. After a
// switch that the server makes, a refresh of the old page may arrive during the first run of the
// new one, and empties it for good. Other buttons and keys do what they do on any link.
// Pages change in the browser only. What Streamlit hears late of a page that a viewer has left again
// would make that page the address, and take the way forward away: such changes are left out.

function follow(event) {
  const link = event.target.closest?.("a.ett-go");
  const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !plain || event.defaultPrevented) return;
  event.preventDefault();
  go(link.href);
}

const push = Object.getPrototypeOf(window.history).pushState.bind(window.history);

function stay(state, title, address) {
  const there = new URL(address ?? "", window.location.href);
  if (there.pathname === window.location.pathname) push(state, title, address);
}

function go(address) {
  push({}, "", new URL(address, document.baseURI));
  window.dispatchEvent(new PopStateEvent("popstate"));
}

export default function ({ data }) {
  if (!window.ettFollows) {
    document.addEventListener("click", follow);
    window.history.pushState = stay;
    window.ettFollows = true;
  }
  if (data.href && window.ettWent !== data.number) {
    window.ettWent = data.number;
    go(data.href);
  }
}
