// Several chunks at once: those that are picked in the list, and what is done with them together.
import { del, patch } from "../api.js";
import { confirm } from "../dialog.js";
import { el, icon, setText } from "../dom.js";
import { plural } from "../format.js";

export class ChunkPicks {
  // run(doing): waits for it, and shows the list anew.
  constructor({ path, run }) {
    Object.assign(this, { path, run, ids: new Set() });
    const button = (symbol, label, act) => el("button.button.button-s.button-icon", { type: "button", title: label, "aria-label": label, onclick: act }, icon(symbol));
    this.all = el("input.chunk-pick-all", { type: "checkbox", id: "pick-all" });
    this.count = el("span.small.quiet", { role: "status" });
    this.acts = el("span.row.chunk-acts", {},
      button("eye", "Let searches find them", () => this.switchAll(true)), button("eye-off", "Leave out", () => this.switchAll(false)), button("delete", "Delete", () => this.removeAll()));
    this.bar = el("div.row.chunk-picks", {}, el("label.check", { for: "pick-all" }, this.all, "Pick all"), this.count, this.acts);
    this.all.addEventListener("change", () => this.pickAll(this.all.checked));
  }

  // The list is drawn anew: nothing is picked that can't be seen.
  begin(list) {
    this.list = list;
    this.ids.clear();
    this.show();
  }

  pick(chunkId, is) {
    if (is) this.ids.add(chunkId);
    else this.ids.delete(chunkId);
    this.show();
  }

  pickAll(is) {
    for (const box of this.list.querySelectorAll(".chunk-pick")) {
      box.checked = is;
      this.pick(box.value, is);
    }
  }

  show() {
    const total = this.list?.children.length ?? 0;
    this.bar.hidden = total < 2;
    this.all.checked = total > 0 && this.ids.size === total;
    this.all.indeterminate = this.ids.size > 0 && this.ids.size < total;
    this.acts.classList.toggle("chunk-acts-away", !this.ids.size); // its place is kept
    setText(this.count, this.ids.size ? `${plural(this.ids.size, "chunk")}` : "");
  }

  setEditable(canEdit) {
    for (const button of this.acts.children) button.disabled = !canEdit;
  }

  switchAll(isOn) {
    this.run(patch(`${this.path}/chunks`, { chunk_ids: [...this.ids], available: isOn }).then(() => true));
  }

  removeAll() {
    const ids = [...this.ids];
    this.run(confirm({
      title: `Delete ${plural(ids.length, "chunk")}?`,
      text: ["They are found no more. Parsing the document again brings them back, unless they were added by hand."],
      label: "Delete",
      kind: "bad",
      act: async () => {
        await del(`${this.path}/chunks`, { chunk_ids: ids });
        return true;
      },
    }));
  }
}
