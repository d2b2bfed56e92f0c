// Two songs in step, one of them heard.
import { clock, h, icon, replace, setText } from './dom.js';
import { Deck, decode, openAudio, resume, together } from './deck.js';
import { titleOf } from './jobs.js';
import { t } from './texts.js';

// fields that are compared, in this order.
const fields = ['seed', 'num_inference_steps', 'guidance_scale', 'audio_duration', 'instructions', 'input'];

export class Compare {
  #jobs;
  #sides = [];
  #heard = 0;
  #timer = 0;

  constructor(jobs) { this.#jobs = jobs; }

  // open shows the dialog for a song; the other one is chosen in it.
  async open(id) {
    const others = this.#jobs.list.filter((job) => job.status === 'done' && job.id !== id);
    const first = this.#jobs.get(id);
    const body = h('div', { class: 'compare' });
    const close = h('button', { type: 'button', onclick: () => dialog.close() }, t.close);
    const dialog = h('dialog', { 'aria-labelledby': 'compare-title', class: 'wide', onclose: () => this.#close(dialog) },
      h('h2', { id: 'compare-title' }, t.compareTitle), body, h('div', { class: 'actions' }, close));
    document.body.append(dialog);
    dialog.showModal();
    if (!others.length) {
      replace(body, h('p', null, t.compareNone));
      return;
    }
    // The likeliest one: a variation of it, or what it is a variation of.
    const kin = others.find((job) => job.request?.source_job === id || job.id === first.request?.source_job);
    const other = h('select', { 'aria-label': t.compareWith, onchange: () => this.#load(first, this.#jobs.get(other.value), stage) },
      others.map((job) => h('option', { value: job.id, selected: job === kin }, `${titleOf(job, t.untitled)} · ${job.request?.num_inference_steps ?? ''} / ${job.request?.guidance_scale ?? ''}`)));
    const stage = h('div');
    replace(body, h('p', { class: 'hint' }, t.compareHint), h('p', { class: 'pair' }, h('strong', null, titleOf(first, t.untitled)), ` ${t.compareWith} `, other), stage);
    await this.#load(first, this.#jobs.get(other.value), stage);
  }

  async #load(a, b, stage) {
    this.#stop();
    const play = h('button', { type: 'button', class: 'round play', 'aria-label': t.play, disabled: true, onclick: () => this.#toggle() }, icon('play'));
    const time = h('span', { class: 'time' }, t.downloading);
    const at = h('input', { type: 'range', min: '0', step: '0.1', value: '0', 'aria-label': t.wave, oninput: () => this.#seek(Number(at.value)) });
    const switches = [a, b].map((job, i) => h('button', { type: 'button', 'aria-pressed': String(i === 0), onclick: () => this.#hear(i) }, t.hear(i === 0 ? 'A' : 'B')));
    this.#parts = { play, time, at, switches };
    replace(stage, h('div', { class: 'transport' }, play, at, time), h('div', { class: 'actions' }, switches), this.#table(a, b));
    openAudio();
    try {
      const buffers = await Promise.all([a, b].map(async (job) => decode(await (await this.#jobs.audio(job.id, 'flac')).arrayBuffer())));
      if (!play.isConnected) return;
      this.#sides = buffers.map((buffer) => {
        const deck = new Deck();
        deck.add(buffer);
        deck.end();
        return deck;
      });
    } catch (error) {
      setText(time, error.forPeople ?? t.audioLost);
      return;
    }
    at.max = Math.max(...this.#sides.map((deck) => deck.duration));
    play.disabled = false;
    this.#hear(0);
    this.#show();
    this.#timer = setInterval(() => this.#show(), 100);
  }

  #parts = null;

  get #position() { return Math.max(...this.#sides.map((deck) => deck.position)); }
  get #playing() { return this.#sides.some((deck) => deck.playing); }

  #show() {
    const { play, time, at } = this.#parts;
    setText(time, `${clock(this.#position)} / ${clock(Math.round(Number(at.max)))}`);
    at.value = this.#position;
    at.setAttribute('aria-valuetext', clock(this.#position));
    const label = this.#playing ? t.pause : t.play;
    if (play.getAttribute('aria-label') === label) return;
    play.setAttribute('aria-label', label);
    replace(play, icon(this.#playing ? 'pause' : 'play'));
  }

  async #toggle() {
    if (this.#playing) for (const deck of this.#sides) deck.pause();
    else if (await resume()) {
      const from = this.#position >= Number(this.#parts.at.max) - 0.1 ? 0 : this.#position;
      together(this.#sides.map((deck) => [deck, from]));
    }
    this.#show();
  }

  #seek(seconds) {
    if (this.#playing) together(this.#sides.map((deck) => [deck, seconds]));
    else for (const deck of this.#sides) deck.seek(seconds);
  }

  #hear(side) {
    this.#heard = side;
    this.#sides.forEach((deck, i) => deck.mute(i !== side));
    this.#parts.switches.forEach((button, i) => button.setAttribute('aria-pressed', String(i === side)));
  }

  #table(a, b) {
    const rows = fields.filter((f) => String(a.request?.[f]) !== String(b.request?.[f]));
    if (!rows.length) return h('p', { class: 'hint' }, t.compareSame);
    return h('table', null,
      h('thead', null, h('tr', null, h('th', { scope: 'col' }, t.field), h('th', { scope: 'col' }, 'A'), h('th', { scope: 'col' }, 'B'))),
      h('tbody', null, rows.map((f) => h('tr', null, h('th', { scope: 'row' }, t.fieldNames[f]),
        h('td', null, String(a.request?.[f] ?? '')), h('td', null, String(b.request?.[f] ?? ''))))));
  }

  #stop() {
    clearInterval(this.#timer);
    for (const deck of this.#sides) deck.close();
    this.#sides = [];
  }

  #close(dialog) {
    this.#stop();
    dialog.remove();
  }
}
