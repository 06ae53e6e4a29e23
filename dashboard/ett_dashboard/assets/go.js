// Stands before the scripts of all components that draw links, so that links are followed as soon as one
// can be seen. The address changes first, then Streamlit goes there as it follows the browser's back
// button: on that way it stops the refreshes of the page that is left before it asks for the new one. After
// a switch that the server makes, a refresh of the old page may arrive during the first run of the new one,
// and empties it for good. Other buttons and keys do what they do on any link.
// What is drawn anew while a link is pressed takes the link away, and no browser calls that a click: it counts
// as one here where the mouse has stayed.
// Addresses change here only. What Streamlit hears late of a page that a viewer has left again would make
// that page the address, and take the way forward away: such changes are left out.

const push = Object.getPrototypeOf(window.history).pushState.bind(window.history);

function go(address) {
  push({}, "", new URL(address, document.baseURI));
  window.dispatchEvent(new PopStateEvent("popstate"));
}

const isPlain = (event) => event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);

function followLink(event) {
  const link = event.target.closest?.("a.ett-go");
  if (!link || !isPlain(event) || event.defaultPrevented) return;
  event.preventDefault();
  go(link.href);
}

const STAYED_PX = 5;
let pressed = null;

function press(event) {
  const link = isPlain(event) && event.target.closest?.("a.ett-go");
  pressed = link ? { link, x: event.clientX, y: event.clientY } : null;
}

function letGo(event) {
  const last = pressed;
  pressed = null;
  if (!last || last.link.isConnected || !isPlain(event)) return;
  if (Math.hypot(event.clientX - last.x, event.clientY - last.y) < STAYED_PX) go(last.link.href);
}

function stay(state, title, address) {
  const there = new URL(address ?? "", window.location.href);
  if (there.pathname === window.location.pathname) push(state, title, address);
}

if (!window.ettFollows) {
  document.addEventListener("click", followLink);
  document.addEventListener("mousedown", press, true);
  document.addEventListener("mouseup", letGo, true);
  window.history.pushState = stay;
  window.ettFollows = true;
}
