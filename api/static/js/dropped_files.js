// The files of a drop, also those in folders and in folders of these. Hidden files and empty folders are left out.
const SKIPPED = /^(\.|~\$|Thumbs\.db$|desktop\.ini$)/i;

export async function filesOf(dataTransfer) {
  // The entries must be taken before anything is awaited: the browser empties the list afterwards.
  const entries = [...dataTransfer.items].filter((item) => item.kind === "file").map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
  const found = [];
  for (const entry of entries) await walk(entry, found);
  return found;
}

async function walk(entry, found) {
  if (!entry || SKIPPED.test(entry.name)) return;
  if (entry instanceof File) found.push(entry);
  else if (entry.isFile) found.push(await new Promise((resolve, reject) => entry.file(resolve, reject)));
  else for (const child of await childrenOf(entry)) await walk(child, found);
}

// A reader gives a hundred at a time, until it gives none.
async function childrenOf(folder) {
  const reader = folder.createReader();
  const all = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return all;
    all.push(...some);
  }
}

export const wanted = (files) => [...files].filter((file) => !SKIPPED.test(file.name));
