// The page: its panels, and what one tells another.
import { json, onKeyNeeded, setKey } from './api.js';
import { dialog, h, replace, setText } from './dom.js';
import { Compare } from './compare.js';
import { Jobs } from './jobs.js';
import { Library } from './library.js';
import { SongPanel } from './song.js';
import { showNotice, showSystem } from './system.js';
import { t } from './texts.js';
import { WritePanel } from './write.js';

const jobs = new Jobs();
const compare = new Compare(jobs);
let model = null;

const act = {
  along: null, // the song to play once it sounds
  again(job) {
    write.take(job.request);
    go('write');
    write.element.focus();
  },
  compare(id) {
    song.player.deck?.pause();
    compare.open(id);
  },
  show: (id, along) => open(id, along),
};
const write = new WritePanel(async (request, along) => {
  const id = await jobs.create(request);
  open(id, along);
  song.element.focus({ preventScroll: wide.matches });
});
const song = new SongPanel(jobs, act);
const library = new Library(jobs, (id) => {
  open(id);
  song.element.focus();
});
const wide = matchMedia('(min-width: 60rem)');

// open shows a song, and names it in the address so that a reload finds it.
function open(id, along = false) {
  location.hash = id ? `song=${id}` : 'songs';
  library.current = id;
  song.show(id, along);
  library.update();
  go('songs');
}

// go shows a part of the page where there is room for one only.
function go(view) {
  document.body.dataset.view = view;
  for (const [name, button] of Object.entries(tabs)) button.setAttribute('aria-pressed', String(name === view));
}

const tabs = {
  write: h('button', { type: 'button', onclick: () => go('write') }, t.navWrite),
  songs: h('button', { type: 'button', onclick: () => go('songs') }, t.navSongs),
};
const banner = h('p', { class: 'banner', role: 'status', hidden: true });

document.body.append(
  h('a', { class: 'skip', href: '#song', onclick: (e) => { e.preventDefault(); go('songs'); song.element.focus(); } }, t.skip),
  h('header', null,
    h('div', { class: 'brand' }, h('h1', null, t.title), h('p', null, t.tagline)),
    h('nav', { 'aria-label': t.nav }, h('div', { class: 'tabs' }, Object.values(tabs)),
      h('button', { type: 'button', class: 'quiet', onclick: () => showSystem(model) }, t.navSystem))),
  banner,
  h('main', null, write.element, h('div', { class: 'column' }, song.element, library.element)),
  h('footer', null, h('p', null, t.notice, ' ', h('button', { type: 'button', class: 'link', onclick: showNotice }, t.noticeMore))));
go('write');
performance.mark('usable'); // people can write from here on

onKeyNeeded(async (wrong) => {
  const input = h('input', { type: 'password', required: true, autocomplete: 'current-password', 'aria-label': t.key });
  const remember = h('input', { type: 'checkbox' });
  await dialog(t.keyTitle, h('div', null,
    h('p', null, wrong ? t.keyWrong : t.keyText),
    h('label', { class: 'field' }, h('span', null, t.key), input),
    h('label', { class: 'tick' }, remember, h('span', null, t.keyRemember))), [['yes', t.keyGo, 'primary']]);
  setKey(input.value.trim(), remember.checked);
});

// ready waits for the model and tells how far it is.
async function ready() {
  for (;;) {
    let status = 'lost';
    try {
      const response = await fetch(new URL('readyz', document.baseURI), { cache: 'no-store' });
      const r = await response.json();
      status = r.status;
      if (status === 'loading') setText(banner, r.percent > 0 ? t.loading(r.stage, r.percent) : t.loadingStart);
      if (status === 'draining') setText(banner, t.draining);
    } catch {
      setText(banner, t.unreachable);
    }
    banner.hidden = status === 'ready';
    if (status === 'ready') return;
    await new Promise((resolve) => { setTimeout(resolve, 1000); });
  }
}

async function begin() {
  await ready();
  model = (await json('GET', 'v1/models')).data[0];
  document.documentElement.dataset.model = model.id;
  write.setModel(model);
  song.setModel(model);
  if (model.built_in) {
    banner.hidden = false;
    banner.classList.add('calm');
    replace(banner, `${t.builtInTitle}: ${model.notice ?? ''} `, h('button', { type: 'button', class: 'link', onclick: () => showSystem(model) }, t.realTitle));
  }
  await jobs.refresh();
  const wanted = new URLSearchParams(location.hash.slice(1)).get('song');
  // The song of the address, or the one that is being made.
  const id = wanted && jobs.get(wanted) ? wanted : jobs.list.find((job) => job.status === 'running' || job.status === 'queued')?.id;
  if (id) open(id);
  document.documentElement.dataset.ready = 'true';
}

addEventListener('hashchange', () => {
  const id = new URLSearchParams(location.hash.slice(1)).get('song');
  if (id && id !== song.id && jobs.get(id)) open(id);
});
begin();
