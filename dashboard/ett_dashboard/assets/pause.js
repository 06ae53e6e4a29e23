// The switch that holds a page still. What is chosen in the browser counts: what the app tells of it, which may
// cross the next choice, is shown only where nothing was chosen so far.

export default function ({ parentElement, data, setStateValue }) {
  const input = parentElement.querySelector("input");
  if (!input.onchange) input.checked = data.paused;
  input.onchange = () => setStateValue("paused", input.checked);
}
