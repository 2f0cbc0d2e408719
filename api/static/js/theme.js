// Runs before anything is drawn, so that a chosen colour scheme does not flash. The choice is kept in this browser.
(() => {
  try {
    const kept = localStorage.getItem("pagemill.theme");
    if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  } catch {
    // Storage is closed to us: the system's scheme is used.
  }
})();
