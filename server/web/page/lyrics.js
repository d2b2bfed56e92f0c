// The editor of the lyrics: section buttons, and marks beside lines whose text stands on
// a section tag's line.
import { h, replace, setText } from './dom.js';
import { t } from './texts.js';

const tagsAndText = /^[ \t]*(?:\[[^\]]+\][ \t]*)+(?=\S)/;

// besideTags lists the lines, from 1, that have text behind a section tag.
export function besideTags(lyrics) {
  return lyrics.split('\n').flatMap((line, i) => (tagsAndText.test(line) ? [i + 1] : []));
}

function separate(lyrics) {
  return lyrics.split('\n').map((line) => {
    const tags = line.match(tagsAndText)?.[0];
    return tags ? `${tags.trim()}\n${line.slice(tags.length)}` : line;
  }).join('\n');
}

export function lyricsEditor(onInput) {
  const text = h('textarea', { id: 'input', rows: '14', spellcheck: 'true', 'aria-describedby': 'lyrics-hint lyrics-marks', oninput: () => { mark(); onInput(text.value); } });
  const gutter = h('div', { class: 'gutter', 'aria-hidden': 'true' });
  const said = h('p', { id: 'lyrics-marks', class: 'mark-note', hidden: true });
  const hint = h('small', { id: 'lyrics-hint', class: 'hint' }, t.lyricsHint);
  text.addEventListener('scroll', () => { gutter.scrollTop = text.scrollTop; });

  function mark() {
    const lines = besideTags(text.value);
    const marked = new Set(lines);
    const all = text.value.split('\n');
    // One row a line; a line that wraps is as high as its own text, which is there unseen.
    replace(gutter, all.map((line, i) => h('div', marked.has(i + 1) ? { class: 'marked', title: t.markTitle } : null, line || ' ')));
    gutter.scrollTop = text.scrollTop;
    said.hidden = lines.length === 0;
    replace(said, lines.length > 0 && [t.marks(lines), ' ',
      h('button', { type: 'button', class: 'link', onclick: () => { change(separate(text.value)); text.focus(); } }, t.splitTags)]);
  }

  function change(value) {
    text.value = value;
    mark();
    onInput(value);
  }

  // insert puts a tag on a line of its own where the cursor is.
  function insert(name) {
    const at = text.selectionStart;
    const before = text.value.slice(0, at).replace(/[ \t]+$/, '');
    const after = text.value.slice(text.selectionEnd).replace(/^[ \t]+/, '');
    const gap = before === '' || before.endsWith('\n\n') ? '' : before.endsWith('\n') ? '\n' : '\n\n';
    const start = `${before}${gap}[${name}]\n`;
    change(start + (after.startsWith('\n') ? after.slice(1) : after));
    text.focus();
    text.setSelectionRange(start.length, start.length);
  }

  const bar = h('div', { class: 'sections', role: 'group', 'aria-label': t.sections },
    t.sectionNames.map((name) => h('button', { type: 'button', class: 'small', onclick: () => insert(name) }, `[${name}]`)));
  const element = h('div', { class: 'field', 'data-field': 'input' },
    h('label', { for: 'input' }, t.lyrics), hint, bar,
    h('div', { class: 'editor' }, gutter, text), said);
  return {
    element,
    set(value) {
      text.value = value;
      mark();
    },
    instrumental(yes) { setText(hint, yes ? t.lyricsInstrumental : t.lyricsHint); },
  };
}
