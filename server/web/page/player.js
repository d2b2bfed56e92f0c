// The player of one song: wave and spectrogram, transport, loop, keyboard.
import { clock, h, icon, replace, setText } from './dom.js';
import * as audio from './deck.js';
import { t } from './texts.js';

const vendor = './vendor/';
const height = 96; // the policy of the page knows wavesurfer's style sheet with this height
const step = 5; // seconds

export class Player {
  #deck = null;
  #wave = null;
  #regions = null;
  #region = null;
  #placing = false; // a region is shown that nobody drew
  #drawn = 0; // samples that the wave shows
  #spectrogram = null;
  #frame = 0;
  #parts;

  constructor() {
    const button = (name, label, act) => h('button', { type: 'button', class: 'round', 'aria-label': label, title: label, onclick: act }, icon(name));
    const wave = h('div', { class: 'wave', role: 'slider', tabindex: '0', 'aria-label': t.wave, 'aria-valuemin': '0', 'aria-valuemax': '0', 'aria-valuenow': '0' });
    const play = h('button', { type: 'button', class: 'round play', 'aria-label': t.play, title: t.play, onclick: () => this.toggle() }, icon('play'));
    const time = h('span', { class: 'time' }, '0:00');
    const total = h('span', { class: 'time' }, '–:––');
    const volume = h('input', { type: 'range', min: '0', max: '1', step: '0.05', value: sessionStorage.getItem('skald.volume') ?? '1', 'aria-label': t.volume, oninput: () => this.#volume() });
    const small = (label, act, properties) => h('button', { type: 'button', class: 'small', onclick: act, ...properties }, label);
    const loop = small(t.loop, () => this.#toggleLoop(), { 'aria-pressed': 'false' });
    const spectrogram = small(t.spectrogram, () => this.#toggleSpectrogram(), { 'aria-pressed': 'false' });
    const note = h('p', { class: 'note player-note', hidden: true });
    const range = h('span', { class: 'note loop-range' });
    this.element = h('section', { class: 'player', 'aria-label': t.player, onkeydown: (e) => this.#key(e), hidden: true },
      wave,
      h('div', { class: 'spectrogram', hidden: true }),
      note,
      h('div', { class: 'transport' },
        button('back', t.rewind, () => this.#by(-step)), play, button('ahead', t.forward, () => this.#by(step)),
        h('span', { class: 'times' }, time, ' / ', total),
        h('label', { class: 'volume' }, h('span', null, t.volume), volume)),
      h('div', { class: 'tools' },
        loop,
        small('A', () => this.#edge('a'), { 'aria-label': t.loopA, title: t.loopA }),
        small('B', () => this.#edge('b'), { 'aria-label': t.loopB, title: t.loopB }),
        range, spectrogram),
      h('p', { class: 'hint keys' }, t.loopHint, ' ', t.keys));
    this.#parts = { wave, play, time, total, volume, loop, note, range, spectrogram, drawing: this.element.querySelector('.spectrogram') };
  }

  get deck() { return this.#deck; }

  // show puts a deck into the player; null empties it.
  show(deck) {
    cancelAnimationFrame(this.#frame);
    this.#deck?.close();
    this.#deck = deck;
    this.#drawn = 0;
    this.#region = null;
    this.#dropWave();
    this.element.hidden = !deck;
    this.say('');
    if (!deck) return;
    this.#volume();
    deck.addEventListener('state', () => this.#state());
    deck.addEventListener('grown', () => this.#draw());
    deck.addEventListener('moved', () => this.#tick());
    this.#state();
    this.#draw();
  }

  // say shows a line under the wave.
  say(text) {
    this.#parts.note.hidden = !text;
    setText(this.#parts.note, text);
  }

  async toggle() {
    if (!this.#deck) return;
    if (this.#deck.playing) {
      this.#deck.pause();
      return;
    }
    await this.play();
  }

  async play() {
    const ok = await audio.resume();
    if (!this.#deck) return;
    if (ok) {
      this.#deck.play();
      this.say(this.#deck.length ? '' : t.waiting);
    } else this.say(t.blocked);
  }

  #volume() {
    const { value } = this.#parts.volume;
    sessionStorage.setItem('skald.volume', value);
    audio.setVolume(Number(value));
  }

  #by(seconds) { this.#deck?.seek(this.#deck.position + seconds); }

  #state() {
    const { play } = this.#parts;
    const playing = this.#deck.playing;
    replace(play, icon(playing ? 'pause' : 'play'));
    play.setAttribute('aria-label', playing ? t.pause : t.play);
    play.title = playing ? t.pause : t.play;
    cancelAnimationFrame(this.#frame);
    const run = () => {
      this.#tick();
      if (this.#deck?.playing) this.#frame = requestAnimationFrame(run);
    };
    run();
  }

  #tick() {
    const deck = this.#deck;
    if (!deck) return;
    const { time, total, wave } = this.#parts;
    const { position, duration } = deck;
    setText(time, clock(position));
    setText(total, clock(Math.round(duration)));
    wave.setAttribute('aria-valuemax', Math.round(duration));
    wave.setAttribute('aria-valuenow', Math.round(position));
    wave.setAttribute('aria-valuetext', `${clock(position)} / ${clock(Math.round(duration))}`);
    if (this.#wave && this.#drawn) this.#wave.setTime(Math.min(position, duration));
    const level = deck.playing ? audio.level() : 0;
    this.element.dataset.level = level.toFixed(3);
    this.element.style.setProperty('--level', level.toFixed(2));
    if (deck.playing && deck.length) this.say(deck.waiting ? t.waiting : '');
  }

  async #draw() {
    const deck = this.#deck;
    this.#tick();
    if (!deck.length || deck.length === this.#drawn) return;
    const [{ default: WaveSurfer }, { default: Regions }] = await Promise.all([
      import(`${vendor}wavesurfer.esm.js`), import(`${vendor}regions.esm.js`)]);
    if (deck !== this.#deck || deck.length === this.#drawn) return;
    this.#drawn = deck.length;
    if (!this.#wave) this.#makeWave(WaveSurfer, Regions);
    await this.#redraw();
    this.#tick();
    if (this.#region) this.#showLoop();
  }

  // redraw shows what there is; wavesurfer's promise fails when another drawing begins.
  #redraw() { return this.#wave.load('', [this.#deck.mono()], this.#deck.duration).catch(() => {}); }

  #makeWave(WaveSurfer, Regions) {
    const style = getComputedStyle(this.element);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.#regions = Regions.create();
    this.#wave = WaveSurfer.create({
      container: this.#parts.wave, height, normalize: true, barWidth: 2, barGap: 1, barRadius: 2,
      waveColor: colour('--wave'), progressColor: colour('--accent'), cursorColor: colour('--ink'), cursorWidth: 2,
      plugins: [this.#regions],
    });
    this.#wave.on('interaction', (seconds) => this.#deck?.seek(seconds));
    this.#regions.enableDragSelection({ color: colour('--loop') });
    this.#regions.on('region-created', (region) => {
      if (this.#placing) return;
      this.#region?.remove();
      this.#region = region;
      this.#take(region.start, region.end);
    });
    this.#regions.on('region-updated', (region) => this.#take(region.start, region.end));
  }

  #dropWave() {
    this.#wave?.destroy();
    this.#wave = null;
    this.#regions = null;
    this.#spectrogram = null;
    replace(this.#parts.wave);
    replace(this.#parts.drawing);
    this.#parts.drawing.hidden = true;
    this.#parts.spectrogram.setAttribute('aria-pressed', 'false');
    this.#loopState();
  }

  // take makes a loop of what was drawn.
  #take(a, b) {
    this.#deck.setLoop({ a, b: Math.min(b, this.#deck.duration) });
    if (!this.#deck.loop) this.#clearLoop();
    this.#loopState();
  }

  #edge(side) {
    const deck = this.#deck;
    const now = deck.position;
    const loop = { a: 0, b: deck.duration, ...deck.loop, [side]: now };
    if (loop.b - loop.a < 0.05) {
      if (side === 'a') loop.b = deck.duration;
      else loop.a = 0;
    }
    deck.setLoop(loop);
    this.#showLoop();
  }

  #toggleLoop() {
    const deck = this.#deck;
    if (deck.loop) {
      deck.setLoop(null);
      this.#clearLoop();
      this.#loopState();
    } else {
      deck.setLoop({ a: 0, b: deck.duration });
      this.#showLoop();
    }
  }

  #clearLoop() {
    this.#region?.remove();
    this.#region = null;
  }

  #showLoop() {
    const { loop } = this.#deck;
    if (loop && this.#regions) {
      const colour = getComputedStyle(this.element).getPropertyValue('--loop').trim();
      if (this.#region) this.#region.setOptions({ start: loop.a, end: loop.b });
      else {
        this.#placing = true;
        this.#region = this.#regions.addRegion({ start: loop.a, end: loop.b, color: colour });
        this.#placing = false;
      }
    }
    this.#loopState();
  }

  #loopState() {
    const loop = this.#deck?.loop;
    this.#parts.loop.setAttribute('aria-pressed', String(Boolean(loop)));
    setText(this.#parts.range, loop ? t.loopRange(loop.a, loop.b) : '');
  }

  async #toggleSpectrogram() {
    const { spectrogram, drawing } = this.#parts;
    const on = spectrogram.getAttribute('aria-pressed') !== 'true';
    spectrogram.setAttribute('aria-pressed', String(on));
    drawing.hidden = !on;
    if (on && !this.#spectrogram) await this.#makeSpectrogram();
  }

  async #makeSpectrogram() {
    if (!this.#wave) return;
    const { default: Spectrogram } = await import(`${vendor}spectrogram.esm.js`);
    if (!this.#wave || this.#spectrogram) return;
    this.#spectrogram = this.#wave.registerPlugin(Spectrogram.create({
      container: this.#parts.drawing, height: 128, fftSamples: 1024, scale: 'mel', frequencyMax: 11000, labels: false, colorMap: 'roseus',
    }));
    await this.#redraw();
  }

  #key(event) {
    if (!this.#deck || event.ctrlKey || event.metaKey || event.altKey) return;
    const onRange = event.target.matches('input');
    const onButton = event.target.matches('button');
    const act = {
      ' ': () => !onButton && this.toggle(),
      ArrowLeft: () => !onRange && this.#by(-step),
      ArrowRight: () => !onRange && this.#by(step),
      Home: () => !onRange && this.#deck.seek(0),
      End: () => !onRange && this.#deck.seek(this.#deck.duration),
      l: () => this.#toggleLoop(), a: () => this.#edge('a'), b: () => this.#edge('b'),
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (act && act() !== false) event.preventDefault();
  }
}
