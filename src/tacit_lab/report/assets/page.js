"use strict";
// Hide and show curves, switch axes, read numbers. Without script the page shows everything.
const number = (x) => {
  if (x === null) return "?";
  if (x !== 0 && (x >= 1e6 || x < 1e-3)) return x.toExponential(2);
  return Number(x.toPrecision(3)).toLocaleString("en");
};

for (const box of document.querySelectorAll(".figure")) {
  const name = box.id;
  box.querySelectorAll("input[data-curve]").forEach((input) => {
    input.addEventListener("change", () => {
      const ends = ["line", "band", "bar", "fit", "stated"].map((p) => `-${p}-${input.dataset.curve}`);
      box.querySelectorAll("svg [id]").forEach((part) => {
        if (ends.some((end) => part.id.endsWith(end))) part.style.display = input.checked ? "" : "none";
      });
    });
  });
  const button = box.querySelector(".scale");
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      box.dataset.scale = box.dataset.scale === "log" ? "linear" : "log";
      button.textContent = box.dataset.scale === "log" ? "linear axes" : "logarithmic axes";
    });
  }
  const data = document.getElementById(`${name}-data`);
  if (data) read(box, JSON.parse(data.textContent));
}

window.addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
});

function read(box, curves) {
  const tip = box.querySelector(".tip");
  box.querySelectorAll("[data-axes]").forEach((holder) => {
    const axes = JSON.parse(holder.dataset.axes);
    const svg = holder.querySelector("svg");
    svg.addEventListener("pointermove", (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const share = (at.x - axes.left) / (axes.right - axes.left);
      if (share < 0 || share > 1 || at.y < axes.top || at.y > axes.bottom) { tip.style.display = "none"; return; }
      const [low, high] = axes.x;
      const x = axes.log ? low * (high / low) ** share : low + (high - low) * share;
      show(tip, curves, x, box);
      const place = box.getBoundingClientRect();
      const left = event.clientX - place.left;
      tip.style.display = "block";
      tip.style.top = `${event.clientY - place.top + 14}px`;
      tip.style.left = left < place.width / 2 ? `${left + 12}px` : "auto";
      tip.style.right = left < place.width / 2 ? "auto" : `${place.width - left + 12}px`;
    });
    svg.addEventListener("pointerleave", () => { tip.style.display = "none"; });
  });
}

function show(tip, curves, x, box) {
  tip.replaceChildren();
  const head = document.createElement("b");
  head.textContent = `after ${Math.round(x).toLocaleString("en")} users`;
  tip.append(head);
  curves.forEach((curve, i) => {
    const input = box.querySelector(`input[data-curve="${i}"]`);
    if ((input && !input.checked) || x > curve.episodes[curve.episodes.length - 1] * 1.001) return;
    let j = curve.episodes.findIndex((k) => k >= x);
    if (j < 0) j = curve.episodes.length - 1;
    const line = document.createElement("div");
    line.style.color = curve.colour;
    line.textContent = `${curve.label}: ${number(curve.mean[j])}`;
    tip.append(line);
  });
}
