// The panel of one song: how far it is, what became of it, its player and what can be
// done with it.
import { announce, clock, dialog, h, replace, save, setText } from './dom.js';
import { ApiError } from './api.js';
import { Deck, openAudio, decode } from './deck.js';
import { ended, fileName, titleOf } from './jobs.js';
import { encode, shareable } from './draft.js';
import { Player } from './player.js';
import { t } from './texts.js';

export class SongPanel {
  #jobs;
  #model;
  #act;
  #id = null;
  #audio = null; // {id, deck, bytes, stop, whole}
  #status = '';
  #parts;
  #buttons = '';

  // act has what only the page can do: again(job), compare(id), show(id).
  constructor(jobs, act) {
    this.#jobs = jobs;
    this.#act = act;
    this.player = new Player();
    const part = (name, tag = 'div', properties = {}) => h(tag, { class: name, ...properties });
    this.#parts = {
      title: part('song-title', 'h3'),
      status: part('chip', 'span'),
      trouble: part('trouble', 'div', { role: 'alert' }),
      lost: part('lost', 'p', { role: 'status', hidden: true }),
      bar: h('progress', { max: '100', value: '0', 'aria-label': t.progress }),
      steps: part('stages', 'ol'),
      facts: part('facts', 'dl'),
      running: part('actions running'),
      warnings: part('warnings', 'details'),
      downloads: part('downloads'),
      note: part('note', 'p', { role: 'status' }),
      done: part('actions done'),
    };
    const p = this.#parts;
    this.body = h('div', { class: 'song', hidden: true },
      h('div', { class: 'song-head' }, p.title, p.status),
      p.lost, p.bar, p.steps, p.facts, p.running, p.trouble, this.player.element, p.downloads, p.note, p.done, p.warnings);
    this.empty = h('p', { class: 'empty' }, t.noSong);
    this.element = h('section', { id: 'song', class: 'card', 'aria-labelledby': 'song-title', tabindex: '-1' },
      h('h2', { id: 'song-title' }, t.song), this.empty, this.body);
    jobs.addEventListener('change', (e) => {
      if (this.#id && (e.detail === this.#id || e.detail === '')) this.#update();
    });
    jobs.addEventListener('connection', (e) => this.#connection(e.detail));
  }

  get id() { return this.#id; }

  setModel(model) { this.#model = model; }

  // show puts a song into the panel; along plays it as soon as it can be heard.
  show(id, along = false) {
    if (this.#id === id) return;
    this.#closeAudio();
    this.#id = id;
    this.#status = '';
    this.#buttons = '';
    this.#parts.lost.hidden = true;
    setText(this.#parts.note, '');
    this.#jobs.watch(id);
    this.#update(along);
  }

  #connection(state) {
    const { lost } = this.#parts;
    if (state === 'lost') {
      lost.hidden = false;
      setText(lost, t.lost);
    } else {
      lost.hidden = true;
      announce(t.back);
      this.#listen(this.#jobs.get(this.#id));
    }
  }

  #update(along) {
    const job = this.#jobs.get(this.#id);
    this.body.hidden = !job;
    this.empty.hidden = Boolean(job);
    if (!job) {
      this.#closeAudio();
      return;
    }
    const p = this.#parts;
    const title = titleOf(job, t.untitled);
    setText(p.title, title);
    setText(p.status, t.status[job.status]);
    p.status.dataset.status = job.status;
    if (ended(job)) p.lost.hidden = true;
    this.#progress(job);
    this.#facts(job);
    this.#trouble(job);
    this.#warnings(job);
    this.#actions(job);
    this.#listen(job, along);
    this.#tell(job);
  }

  #progress(job) {
    const p = this.#parts;
    const busy = !ended(job);
    p.bar.hidden = p.steps.hidden = !busy;
    if (!busy) return;
    p.bar.value = job.percent ?? 0;
    if (job.status === 'queued') p.bar.removeAttribute('value');
    const order = ['queue', 'ar', 'flow', 'encode'];
    const now = job.status === 'queued' ? 'queue' : { prompt: 'ar', load: 'queue', vocoder: 'flow' }[job.stage] ?? job.stage ?? 'ar';
    const made = { queue: job.status === 'running', ar: job.frames > 0 && job.frames === job.max_frames };
    if (p.steps.childElementCount !== order.length) replace(p.steps, order.map((s) => h('li', { 'data-stage': s }, t.stage[s])));
    for (const item of p.steps.children) {
      const s = item.dataset.stage;
      const done = made[s] || order.indexOf(s) < order.indexOf(now);
      item.className = s === now || (job.status === 'running' && s === 'flow' && job.audio_seconds > 0) ? 'now' : done ? 'past' : '';
      if (s === now) item.setAttribute('aria-current', 'step');
      else item.removeAttribute('aria-current');
    }
  }

  #facts(job) {
    const rows = [];
    const row = (name, value) => value && rows.push([t.facts[name], value]);
    if (job.status === 'queued') row('stage', job.position > 0 ? t.position(job.position) : t.stage.queue);
    if (job.status === 'running') {
      if (job.max_frames) row('frames', t.frames(job.frames, job.max_frames, job.frames / this.#model.frame_rate));
      row('ready', t.ready(job.audio_seconds));
      row('eta', job.eta_seconds > 0 ? t.eta(job.eta_seconds) : '');
      const rate = this.#model?.frame_rate;
      row('speed', rate && job.elapsed_seconds > 0.5 && job.frames > 0 ? t.speed(job.frames / rate / job.elapsed_seconds) : '');
    }
    if (job.status === 'done') {
      row('end', t.ends[job.end_reason]);
      const took = job.ended_at && job.started_at ? job.ended_at - job.started_at : 0;
      row('took', took ? clock(took) : '');
    }
    if (job.request && ended(job)) {
      row('seed', String(job.request.seed));
      row('settings', job.request.num_inference_steps && t.settings(job.request.num_inference_steps, job.request.guidance_scale));
    }
    const { facts } = this.#parts;
    const items = [...facts.children];
    if (items.length !== rows.length || rows.some(([name], i) => items[i].firstChild.textContent !== name)) {
      replace(facts, rows.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))));
    } else rows.forEach(([, value], i) => setText(items[i].lastChild, value));
  }

  #trouble(job) {
    const text = job.status === 'failed' ? t.announceFailed(job.error?.message ?? '') : '';
    setText(this.#parts.trouble, text);
    this.#parts.trouble.hidden = !text;
  }

  #warnings(job) {
    const { warnings } = this.#parts;
    const list = [...(job.request?.source_job ? [t.varyOf] : []), ...job.warnings ?? []];
    warnings.hidden = list.length === 0;
    const key = list.join('\n');
    if (warnings.dataset.key === key) return;
    warnings.dataset.key = key;
    replace(warnings, h('summary', null, `${t.warnings} (${list.length})`), h('ul', null, list.map((w) => h('li', null, w))));
  }

  // actions builds the buttons anew only when others are due, so that focus stays.
  #actions(job) {
    const p = this.#parts;
    const kind = `${job.id} ${job.status} ${job.finishing ?? ''} ${Boolean(job.request)} ${Boolean(job.pcm)}`;
    if (kind === this.#buttons) return;
    this.#buttons = kind;
    const busy = !ended(job);
    const button = (label, act, properties) => h('button', { type: 'button', onclick: (e) => this.#try(act, e.currentTarget), ...properties }, label);
    replace(p.running, busy && [
      job.status === 'running' && !job.pcm && button(t.finish, () => this.#jobs.finish(job.id), { title: t.finishHint, disabled: Boolean(job.finishing) }),
      button(t.cancel, () => this.#jobs.cancel(job.id), { class: 'quiet' }),
      job.finishing && h('span', { class: 'note' }, t.finishing),
    ]);
    const formats = job.pcm ? ['wav'] : this.#model?.response_formats ?? [];
    replace(p.downloads, job.status === 'done' && [
      h('span', { class: 'label' }, t.download),
      formats.map((f) => button(f === 'pcm' ? 'PCM' : f === 'opus' ? 'Opus' : f.toUpperCase(), () => this.#download(job, f), { class: 'small', 'aria-label': t.downloadAs(f), 'data-format': f })),
    ]);
    replace(p.done, ended(job) && job.request && [
      button(t.again, () => this.#act.again(job)),
      job.status === 'done' && !job.pcm && button(t.vary, () => this.#vary(job)),
      job.status === 'done' && button(t.compare, () => this.#act.compare(job.id)),
      button(t.share, () => this.#share(job), { class: 'quiet' }),
      button(t.remove, () => this.#remove(job), { class: 'quiet danger' }),
    ]);
  }

  async #try(act, button) {
    button.disabled = true;
    try {
      await act();
    } catch (error) {
      setText(this.#parts.note, error instanceof ApiError ? error.forPeople : String(error.message ?? error));
    } finally {
      button.disabled = false;
    }
  }

  #tell(job) {
    if (job.status === this.#status) return;
    const before = this.#status;
    this.#status = job.status;
    if (!before) return;
    if (job.status === 'running') announce(t.announceStart);
    if (job.status === 'done') announce(t.announceDone);
    if (job.status === 'failed') announce(t.announceFailed(job.error?.message ?? ''));
    if (job.status === 'cancelled') announce(t.announceCancelled);
  }

  // listen keeps the player supplied with what there is of the song.
  async #listen(job, along) {
    if (!job || job.status === 'queued' || ((job.status === 'failed' || job.status === 'cancelled') && !this.#audio?.bytes)) {
      if (along) this.#act.along = job?.id;
      if (job && ended(job)) this.#closeAudio();
      return;
    }
    if (this.#audio?.id !== job.id) {
      openAudio(this.#model?.sample_rate);
      const deck = new Deck();
      this.#audio = { id: job.id, deck, bytes: 0, stop: new AbortController(), loading: false, failures: 0 };
      this.player.show(deck);
      const wanted = along || this.#act.along === job.id;
      this.#act.along = null;
      if (wanted) this.player.play();
      else if (job.status === 'running') this.player.say(job.audio_seconds > 0 ? '' : t.waiting);
    }
    const a = this.#audio;
    if (a.loading || a.deck.complete) return;
    a.loading = true;
    try {
      if (a.bytes === 0 && job.status === 'done') await this.#whole(a);
      else await this.#grow(a);
      if (a.failures) this.player.say('');
      a.failures = 0;
    } catch {
      if (!a.stop.signal.aborted) {
        this.player.say(t.audioLost);
        setTimeout(() => { if (this.#audio === a) this.#listen(this.#jobs.get(a.id)); }, Math.min(8000, 500 * 2 ** a.failures++));
      }
    } finally {
      a.loading = false;
    }
    const now = this.#jobs.get(a.id);
    // What came while the last piece was being read.
    if (this.#audio === a && now && now !== job && !a.failures && !a.deck.complete) this.#listen(now);
  }

  async #whole(a) {
    const file = await this.#jobs.audio(a.id, 'flac', a.stop.signal);
    const buffer = await decode(await file.arrayBuffer());
    if (a.stop.signal.aborted) return;
    a.deck.add(buffer);
    a.deck.end();
  }

  async #grow(a) {
    const final = ended(this.#jobs.get(a.id));
    const ready = this.#jobs.get(a.id).audio_seconds;
    if (ready > a.deck.duration + 1 / a.deck.rate) {
      const more = await this.#jobs.pcm(a.id, a.bytes, a.stop.signal);
      if (a.stop.signal.aborted) return;
      if (more?.bytes.byteLength) {
        if (a.bytes === 0) announce(t.announceHear);
        a.bytes += more.bytes.byteLength;
        a.deck.addPCM(more.bytes, more.rate);
      }
    }
    if (final) a.deck.end();
  }

  #closeAudio() {
    this.#audio?.stop.abort();
    this.#audio = null;
    this.player.show(null);
  }

  async #download(job, format) {
    setText(this.#parts.note, t.downloading);
    const name = `${fileName(job, t.untitled)}.${format}`;
    save(await this.#jobs.audio(job.id, format), name);
    setText(this.#parts.note, t.downloaded(name));
  }

  #share(job) {
    const name = `${fileName(job, t.untitled)}.json`;
    save(new Blob([`${encode(shareable(job.request), 2)}\n`], { type: 'application/json' }), name);
    setText(this.#parts.note, t.shared(name));
  }

  async #remove(job) {
    const answer = await dialog(t.remove, h('p', null, t.removeSure), [['', t.keep, ''], ['yes', t.remove, 'danger']]);
    if (answer !== 'yes') return;
    await this.#jobs.remove(job.id);
    announce(t.removed);
    this.#act.show(null);
  }

  async #vary(job) {
    const { num_inference_steps: steps, guidance_scale: guidance } = job.request;
    const number = (label, hint, properties) => {
      const input = h('input', { type: 'number', required: true, ...properties });
      return [input, h('label', { class: 'field' }, h('span', null, label), input, h('small', { class: 'hint' }, hint))];
    };
    const [stepsInput, stepsField] = number(t.steps, t.stepsHint, { min: '1', max: '200', step: '1', value: steps, id: 'vary-steps' });
    const [guidanceInput, guidanceField] = number(t.guidance, t.guidanceHint, { min: '0', max: '20', step: 'any', value: guidance, id: 'vary-guidance' });
    const seed = h('input', { type: 'text', inputmode: 'numeric', pattern: '[0-9]{1,20}', required: true, value: String(job.request.seed), id: 'vary-seed' });
    const content = h('div', null, h('p', null, t.varyText), stepsField, guidanceField, h('label', { class: 'field' }, h('span', null, t.seed), seed));
    if (await dialog(t.varyTitle, content, [['', t.close, ''], ['yes', t.varyStart, 'primary']]) !== 'yes') return;
    const body = { source_job: job.id, num_inference_steps: Number(stepsInput.value), guidance_scale: Number(guidanceInput.value), ...shareable({ seed: seed.value }) };
    const id = await this.#jobs.create(body);
    this.#act.show(id, true);
  }
}
