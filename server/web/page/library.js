// The list of songs.
import { clock, h, replace, setText } from './dom.js';
import { titleOf } from './jobs.js';
import { t } from './texts.js';

export class Library {
  #jobs;
  #rows = new Map();
  #open;
  current = null;

  constructor(jobs, open) {
    this.#jobs = jobs;
    this.#open = open;
    this.count = h('span', { class: 'count' });
    this.list = h('ul', { class: 'songs' });
    this.empty = h('p', { class: 'empty' }, t.libraryEmpty);
    this.note = h('p', { class: 'hint', hidden: true }, t.noJobs);
    this.more = h('button', { type: 'button', class: 'quiet', hidden: true, onclick: () => jobs.older() }, t.moreSongs);
    this.element = h('section', { id: 'library', class: 'card', 'aria-labelledby': 'library-title' },
      h('h2', { id: 'library-title' }, t.library, ' ', this.count), this.note, this.empty, this.list, this.more);
    jobs.addEventListener('change', () => this.update());
  }

  update() {
    const { list } = this.#jobs;
    this.empty.hidden = list.length > 0;
    this.note.hidden = this.#jobs.kept;
    this.more.hidden = !this.#jobs.more;
    setText(this.count, list.length ? t.libraryOf(list.length) : '');
    const seen = new Set();
    list.forEach((job, i) => {
      seen.add(job.id);
      const row = this.#rows.get(job.id) ?? this.#row(job.id);
      this.#fill(row, job);
      if (this.list.children[i] !== row.element) this.list.insertBefore(row.element, this.list.children[i] ?? null);
    });
    for (const [id, row] of this.#rows) {
      if (seen.has(id)) continue;
      row.element.remove();
      this.#rows.delete(id);
    }
  }

  #row(id) {
    const row = { title: h('span', { class: 'song-name' }), about: h('span', { class: 'song-about' }), chip: h('span', { class: 'chip' }) };
    row.button = h('button', { type: 'button', class: 'song-row', 'data-id': id, onclick: () => this.#open(id) }, row.title, row.about, row.chip);
    row.element = h('li', null, row.button);
    this.#rows.set(id, row);
    return row;
  }

  #fill(row, job) {
    setText(row.title, titleOf(job, t.untitled));
    const when = new Date(job.created_at * 1000).toLocaleString('en', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hour12: false });
    const long = job.audio_seconds > 0 ? ` · ${clock(Math.round(job.audio_seconds))}` : '';
    const vary = job.request?.source_job ? ` · ${t.vary}` : '';
    setText(row.about, `${when}${long}${vary}`);
    const percent = job.status === 'running' && job.percent ? ` ${Math.floor(job.percent)} %` : '';
    setText(row.chip, `${t.status[job.status]}${percent}`);
    row.chip.dataset.status = job.status;
    if (job.id === this.current) row.button.setAttribute('aria-current', 'true');
    else row.button.removeAttribute('aria-current');
  }
}
