(() => {
  "use strict";
  const PERIOD = 5000, LONGEST = 60000;
  const live = document.getElementById("live");
  let stamp = document.documentElement.dataset.stamp, drawn = Date.now(), busy = false;
  document.documentElement.dataset.live = "yes";

  const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  function words(seconds) {
    const size = Math.abs(seconds);
    if (size < 1) return "just now";
    let said = "";
    if (size >= 2 * 365.25 * 86400) said = `${(size / (365.25 * 86400)).toPrecision(3)} years`;
    else for (const [name, unit] of UNITS) {
      const count = Math.round(size / unit);
      if (size >= 2 * unit || unit === 1) { said = `${count} ${name}${count === 1 ? "" : "s"}`; break; }
    }
    return seconds > 0 ? `in ${said}` : `${said} ago`;
  }
  function times() {
    for (const node of document.querySelectorAll("time[data-relative]"))
    {
      const away = (Date.parse(node.dateTime) - Date.now()) / 1000;
      node.textContent = away <= 0 && node.dataset.relative ? node.dataset.relative : words(away);
    }
  }

  async function swap(address) {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const focus = document.activeElement && document.activeElement.id;
    for (const part of document.querySelectorAll("[data-part]")) {
      const next = fresh.getElementById(part.id);
      if (!next || next.outerHTML === part.outerHTML) continue;
      const copy = document.importNode(next, true);
      for (const old of part.querySelectorAll("details[open]")) {
        const same = copy.querySelector(`#${old.id}`);
        if (same) same.open = true;
      }
      const scrolls = [...part.querySelectorAll(".scroll")].map((s) => [s.id, s.scrollLeft, s.scrollTop]);
      part.replaceWith(copy);
      for (const [id, left, top] of scrolls) {
        const same = document.getElementById(id);
        if (same) { same.scrollLeft = left; same.scrollTop = top; }
      }
    }
    if (focus && document.activeElement === document.body) {
      const same = document.getElementById(focus);
      if (same) same.focus({ preventScroll: true });
    }
    stamp = fresh.documentElement.dataset.stamp;
    document.documentElement.dataset.stamp = stamp;
    drawn = Date.now();
    times();
  }

  async function look() {
    if (busy || document.hidden) return;
    busy = true;
    try {
      const answer = await fetch(`v1/dashboard${location.search}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const seen = await answer.json();
      if (seen.stamp !== stamp || Date.now() - drawn > LONGEST) await swap(location.href);
      live.textContent = `Live: as of ${seen.generated.replace("T", " ").replace("Z", " UTC")}.`;
    } catch {
      live.textContent = "The service does not answer; trying again.";
    }
    times();
    busy = false;
  }

  async function choose(form) {
    const query = new URLSearchParams(new FormData(form)).toString();
    const address = `${location.pathname}?${query}`;
    try {
      await swap(address);
      history.replaceState(null, "", address);
    } catch { location.assign(address); }
  }
  document.addEventListener("change", (event) => {
    if (event.target.form && event.target.form.id === "map-form") choose(event.target.form);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "map-form") return;
    event.preventDefault();
    choose(event.target);
  });
  document.addEventListener("visibilitychange", look);
  setInterval(look, PERIOD);
  times();
})();
