// Draws a Plotly figure and redraws it in place, so that zoom and pan outlive a refresh:
// the same node gets Plotly.react with an unchanged uirevision. Plotly comes from this server.

function plotly(source) {
  window.ettPlotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(source, document.baseURI).href;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("Plotly could not be loaded from " + script.src));
    document.head.appendChild(script);
  });
  return window.ettPlotly;
}

function dressed(layout, box, revision) {
  const styles = getComputedStyle(box);
  const colour = (name) => styles.getPropertyValue(name).trim();
  const text = colour("--st-text-color") || styles.color;
  const line = colour("--st-border-color") || "#8888";
  const surface = colour("--st-secondary-background-color") || "#fff";
  const axis = (own) => ({ gridcolor: line, linecolor: line, tickcolor: line, zerolinecolor: line, ...own });
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: { bgcolor: surface, bordercolor: line, align: "left", font: { color: text, size: 13, family: styles.fontFamily } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: line, activecolor: text },
    ...layout,
    font: { color: text, size: 13, family: styles.fontFamily },
    xaxis: axis(layout.xaxis),
    yaxis: axis(layout.yaxis),
    uirevision: revision,
    autosize: true,
  };
}

const buttons = [["zoom2d", "pan2d", "resetScale2d"]];

export default function ({ parentElement, data }) {
  const box = parentElement.querySelector(".ett-chart");
  const { data: traces, layout } = data.figure;
  box.style.height = layout.height + "px";
  box.setAttribute("role", "figure"); // an image may hold no buttons, and Plotly has some
  box.setAttribute("aria-label", data.title);
  const config = {
    displaylogo: false,
    displayModeBar: data.zoom ? "hover" : false,
    modeBarButtons: buttons,
    responsive: true,
  };
  plotly(data.plotly)
    .then((Plotly) => Plotly.react(box, traces, dressed(layout, box, data.revision), config))
    .then(() => (box.dataset.drawn = String(Number(box.dataset.drawn || 0) + 1)))
    .catch((error) => (box.textContent = error.message));
  return () => window.Plotly?.purge(box);
}
