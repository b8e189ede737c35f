'use strict';
// Headings sort the rows below them: rising, falling, as they were. What has no value stays below.
for (const table of document.querySelectorAll('table.sortable')) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, at) => {
    const cell = row.cells[at];
    if (!cell || cell.classList.contains('instead')) return null;
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    const text = cell.textContent.trim();
    return text === '' || text === '–' ? null : text;
  };
  const isText = (value) => typeof value === 'string';
  const compare = (a, b) => isText(a) !== isText(b) ? isText(a) - isText(b)
    : isText(a) ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
  const sort = (at, order) => {
    for (const head of heads) head.removeAttribute('aria-sort');
    if (!order) return body.append(...rows);
    heads[at].setAttribute('aria-sort', order);
    const sign = order === 'ascending' ? 1 : -1;
    const valued = rows.map((row) => ({ row, value: value(row, at) }));
    valued.sort((a, b) => (a.value === null) - (b.value === null) || sign * compare(a.value, b.value));
    body.append(...valued.map((one) => one.row));
  };
  heads.forEach((head, at) => {
    if (!head.textContent.trim()) return;
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    const next = { ascending: 'descending', descending: null };
    button.addEventListener('click', () => {
      const now = head.getAttribute('aria-sort');
      sort(at, now ? next[now] : 'ascending');
    });
  });
}
