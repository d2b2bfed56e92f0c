// Small helpers to build the page.

// h makes an element: properties that begin with "on" are listeners, the others
// attributes; true is an empty attribute, false, null and undefined none.
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((c) => c != null && c !== false));
  return element;
}

const svg = 'http://www.w3.org/2000/svg';

// icon draws one of a few signs; what it means is said by the text or label beside it.
export function icon(name) {
  const root = document.createElementNS(svg, 'svg');
  root.setAttribute('viewBox', '0 0 24 24');
  root.setAttribute('aria-hidden', 'true');
  root.classList.add('icon');
  const path = document.createElementNS(svg, 'path');
  path.setAttribute('d', shapes[name]);
  root.append(path);
  return root;
}

const shapes = {
  play: 'M8 5v14l11-7z',
  pause: 'M7 5h4v14H7zM13 5h4v14h-4z',
  back: 'M12 6v12l-8-6zM20 6v12l-8-6z',
  ahead: 'M4 6v12l8-6zM12 6v12l8-6z',
  dice: 'M5 3h14a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2zm3 3.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zm8 0a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zm-4 4a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zm-4 4a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zm8 0a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3z',
};

// replace fills an element anew.
export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((c) => c != null && c !== false));
}

// setText changes a text only when it differs, so that screen readers are not disturbed.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

let live;
// announce tells screen readers what has happened.
export function announce(text) {
  if (!live) {
    live = h('p', { class: 'visually-hidden', role: 'status', 'aria-live': 'polite' });
    document.body.append(live);
  }
  live.textContent = '';
  setTimeout(() => { live.textContent = text; }, 50);
}

// dialog shows a modal dialog and resolves with the value of the button that closed it.
export function dialog(title, content, buttons) {
  const heading = h('h2', { id: 'dialog-title' }, title);
  const element = h('dialog', { 'aria-labelledby': 'dialog-title' },
    h('form', { method: 'dialog' }, heading, content,
      h('div', { class: 'actions' }, buttons.map(([value, label, kind]) =>
        h('button', { value, class: kind ?? '', formnovalidate: value === '' }, label)))));
  document.body.append(element);
  const before = document.activeElement;
  element.showModal();
  return new Promise((resolve) => {
    element.addEventListener('close', () => {
      element.remove();
      before?.focus?.();
      resolve(element.returnValue);
    });
  });
}

// clock writes seconds as m:ss.
export function clock(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) return '–:––';
  const s = Math.floor(seconds + 1e-6);
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

// save hands a file to the browser's downloads.
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const a = h('a', { href: url, download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
