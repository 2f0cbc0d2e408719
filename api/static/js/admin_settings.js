// Finds settings by name, value or source as one types, or only those that somebody has set.
const find = document.getElementById("find");
const rows = [...document.querySelectorAll("#settings tbody tr")];
const none = document.getElementById("none-found");

const onlySet = document.getElementById("only-set");

function show() {
  const wanted = find.value.trim().toLowerCase();
  for (const row of rows) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted) || (onlySet.checked && row.dataset.source === "default");
  }
  none.hidden = rows.some((row) => !row.hidden);
}

find.addEventListener("input", show);
onlySet.addEventListener("change", show);
show();
