// A deck plays one song with Web Audio: a finished one, or one that grows while it is
// being made. Positions are exact to the sample, so that a loop has no gap and two decks
// can play in step.

let context = null;
let master = null;
let analyser = null;

// openAudio makes the one way to the loudspeaker. Browsers let it sound only after the
// person has done something; see resume.
export function openAudio(sampleRate = 44100) {
  if (context) return context;
  context = new AudioContext({ sampleRate });
  master = context.createGain();
  analyser = context.createAnalyser();
  analyser.fftSize = 2048;
  master.connect(analyser);
  analyser.connect(context.destination);
  return context;
}

export async function resume() {
  const c = openAudio();
  if (c.state === 'suspended') {
    await Promise.race([c.resume(), new Promise((resolve) => { setTimeout(resolve, 300); })]);
  }
  return c.state === 'running';
}

export function setVolume(v) {
  openAudio();
  master.gain.value = v * v; // loudness is felt about so
}

const wave = new Float32Array(2048);
// level is the peak of what sounds now, 0 to 1.
export function level() {
  if (!analyser) return 0;
  analyser.getFloatTimeDomainData(wave);
  let peak = 0;
  for (const x of wave) peak = Math.max(peak, Math.abs(x));
  return peak;
}

export async function decode(bytes) {
  return openAudio().decodeAudioData(bytes);
}

// Deck is an EventTarget: "state" when it begins or stops playing, "grown" when there is
// more to hear, "ended" at the end.
export class Deck extends EventTarget {
  #pieces = []; // {buffer, at}: at in samples
  #sources = [];
  #gain;
  #from = 0; // position, in seconds, at ...
  #since = 0; // ... this time of the context
  #timer = 0;
  loop = null; // {a, b} in seconds
  playing = false;
  complete = false; // nothing is added any more
  length = 0; // in samples
  rate = 44100;

  constructor() {
    super();
    this.#gain = openAudio().createGain();
    this.#gain.connect(master);
  }

  get duration() { return this.length / this.rate; }

  get position() {
    if (!this.playing) return this.#from;
    const t = this.#from + Math.max(0, context.currentTime - this.#since);
    const { loop } = this;
    if (loop && this.#from < loop.b && t >= loop.b) return loop.a + (t - loop.b) % (loop.b - loop.a);
    return Math.min(t, this.duration);
  }

  // waiting: it plays, and has caught up with what there is.
  get waiting() { return this.playing && !this.complete && this.position >= this.duration - 1e-3; }

  mute(yes) { this.#gain.gain.value = yes ? 0 : 1; }

  // addPCM takes 16-bit samples, left and right in turn.
  addPCM(bytes, rate) {
    const ints = new Int16Array(bytes);
    const n = ints.length >> 1;
    if (n === 0) return;
    const buffer = context.createBuffer(2, n, rate);
    for (let c = 0; c < 2; c++) {
      const out = buffer.getChannelData(c);
      for (let i = 0; i < n; i++) out[i] = ints[2 * i + c] / 32768;
    }
    this.add(buffer);
  }

  add(buffer) {
    const starved = this.playing && (this.waiting || this.length === 0);
    this.rate = buffer.sampleRate;
    const piece = { buffer, at: this.length };
    this.#pieces.push(piece);
    this.length += buffer.length;
    if (this.playing) {
      if (starved) this.#start(piece.at / this.rate);
      else if (!this.loop || this.#from >= this.loop.b) this.#schedule(piece, Infinity);
    }
    this.dispatchEvent(new Event('grown'));
  }

  end() {
    this.complete = true;
    if (this.playing && this.position >= this.duration - 1e-3) this.#over();
    this.dispatchEvent(new Event('grown'));
  }

  play() {
    if (this.playing) return;
    this.playing = true;
    const done = this.complete && this.#from >= this.duration - 0.01;
    this.#start(done ? 0 : this.#from);
    this.#timer = setInterval(() => this.#watch(), 50);
    this.dispatchEvent(new Event('state'));
  }

  pause() {
    if (!this.playing) return;
    this.#from = this.position;
    this.#stop();
    this.dispatchEvent(new Event('state'));
  }

  seek(seconds) {
    const t = Math.min(Math.max(seconds, 0), this.duration);
    if (this.playing) this.#start(t);
    else this.#from = t;
    this.dispatchEvent(new Event('moved'));
  }

  setLoop(loop) {
    const t = this.position;
    this.loop = loop && loop.b - loop.a >= 0.05 ? loop : null;
    if (this.playing) this.#start(this.loop && (t >= this.loop.b || t < this.loop.a) ? this.loop.a : t);
  }

  // start begins to sound from a position, at a time of the context or now.
  startAt(seconds, when) {
    this.playing = true;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#watch(), 50);
    this.#start(seconds, when);
    this.dispatchEvent(new Event('state'));
  }

  // mono is the song at half its rate, for eyes.
  mono() {
    const out = new Float32Array(this.length >> 1);
    let at = 0;
    for (const { buffer } of this.#pieces) {
      const left = buffer.getChannelData(0);
      const right = buffer.getChannelData(buffer.numberOfChannels - 1);
      for (let i = 0; i + 1 < buffer.length && at < out.length; i += 2) {
        out[at++] = (left[i] + right[i] + left[i + 1] + right[i + 1]) / 4;
      }
    }
    return out;
  }

  close() {
    this.#stop();
    this.#pieces = [];
    this.#gain.disconnect();
  }

  #start(seconds, when) {
    this.#silence();
    this.#from = seconds;
    // On the grid of samples, or every piece would be shifted by a fraction of one.
    this.#since = when ?? Math.ceil((context.currentTime + 0.02) * this.rate) / this.rate;
    const { loop } = this;
    const until = loop && seconds < loop.b ? loop.b : Infinity;
    for (const piece of this.#pieces) this.#schedule(piece, until);
    if (until < Infinity) this.#scheduleLoop(loop);
  }

  // schedule plays what a piece has between the start and a position.
  #schedule({ buffer, at }, until) {
    const begin = Math.max(at, Math.round(this.#from * this.rate));
    const end = Math.min(at + buffer.length, until === Infinity ? Infinity : Math.round(until * this.rate));
    if (begin >= end) return;
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#gain);
    const when = this.#since + begin / this.rate - this.#from;
    const late = Math.max(0, context.currentTime - when);
    source.start(when + late, (begin - at) / this.rate + late, (end - begin) / this.rate);
    this.#sources.push(source);
  }

  #scheduleLoop({ a, b }) {
    const first = Math.round(a * this.rate);
    const n = Math.min(Math.round(b * this.rate), this.length) - first;
    if (n <= 0) return;
    const part = context.createBuffer(2, n, this.rate);
    for (const { buffer, at } of this.#pieces) {
      const begin = Math.max(at, first);
      const end = Math.min(at + buffer.length, first + n);
      if (begin >= end) continue;
      for (let c = 0; c < 2; c++) {
        const from = buffer.getChannelData(Math.min(c, buffer.numberOfChannels - 1));
        part.copyToChannel(from.subarray(begin - at, end - at), c, begin - first);
      }
    }
    const source = context.createBufferSource();
    source.buffer = part;
    source.loop = true;
    source.connect(this.#gain);
    source.start(this.#since + b - this.#from);
    this.#sources.push(source);
  }

  #watch() {
    if (this.complete && !this.loop && this.position >= this.duration - 1e-3) this.#over();
  }

  #over() {
    this.#stop();
    this.#from = this.duration;
    this.dispatchEvent(new Event('state'));
    this.dispatchEvent(new Event('ended'));
  }

  #stop() {
    clearInterval(this.#timer);
    this.#silence();
    this.playing = false;
  }

  #silence() {
    for (const source of this.#sources) {
      source.onended = null;
      source.stop();
      source.disconnect();
    }
    this.#sources = [];
  }
}

// together starts decks at positions of their own, at the same moment.
export function together(starts) {
  const rate = context.sampleRate;
  const when = Math.ceil((context.currentTime + 0.05) * rate) / rate;
  for (const [deck, position] of starts) deck.startAt(position, when);
}
